#!/bin/sh
# Make what docker-compose.yml takes as secrets: random passwords, and the URLs with them. What is
# there already is kept.
#   scrapyd/secrets.sh [FOLDER]        default: .secrets
set -eu
folder=${1:-.secrets}
umask 022 # a service reads its file under a user of its own; the folder keeps everybody else out
mkdir -p "$folder"
chmod 700 "$folder"

random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

# keep NAME TEXT: write a file unless it is there.
keep() {
    [ -s "$folder/$1" ] || printf '%s' "$2" >"$folder/$1"
}

for name in redis_password postgres_password mongo_password s3_secret_key scrapyd_password \
    deploy_password; do
    keep "$name" "$(random)"
done
keep s3_access_key moviecrawler
keep redis.conf "requirepass $(cat "$folder/redis_password")
"
keep redis_url "redis://:$(cat "$folder/redis_password")@redis:6379/0"
keep database_url \
    "postgresql://moviecrawler:$(cat "$folder/postgres_password")@postgres:5432/moviecrawler"
password=$(cat "$folder/mongo_password")
keep mongo_url "mongodb://moviecrawler:$password@mongo:27017/moviecrawler?authSource=admin"
echo "secrets.sh: $folder holds the secrets; the API's user is 'moviecrawler'," \
    "with the password in $folder/scrapyd_password"
