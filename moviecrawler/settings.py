BOT_NAME = "moviecrawler"
SPIDER_MODULES = ["moviecrawler.spiders"]
COMMANDS_MODULE = "moviecrawler.commands"
