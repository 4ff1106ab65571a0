"""Which hosts a crawl of a site asks, by the settings, and how it names itself."""

from collections.abc import Mapping

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.sites import ID_SITE, SITES

Settings = Mapping[str, str]


def hosts_of(site: Site, settings: Settings) -> dict[str, str]:
    """Return the scheme and host of each setting that names one of a site's hosts.

    That of its pages is first. An empty setting means the live host beside the live pages. Beside a
    replica it means none: a crawl of a replica requests a live host only where a setting names it.
    """
    profile = SITES[site]
    home = settings[profile.home_setting].rstrip("/")
    hosts = {profile.home_setting: home}
    for host in profile.hosts[1:]:
        if url := settings.get(host.setting) or (host.live if profile.is_live(home) else ""):
            hosts[host.setting] = url.rstrip("/")
    return hosts


def page_hosts_of(site: Site, settings: Settings) -> dict[str, str]:
    """Return those of `hosts_of` that have pages: what budgets and proxies are for."""
    files = {host.setting for host in SITES[site].hosts if host.has_files}
    return {
        setting: url for setting, url in hosts_of(site, settings).items() if setting not in files
    }


def check_hosts(site: Site, settings: Settings) -> None:
    """Raise ConfigurationError for a replica of another host of a site than that of its pages.

    The titles that it names would be requested from the live site.
    """
    profile = SITES[site]
    home, *others = page_hosts_of(site, settings).items()
    for setting, url in others:
        if profile.is_live(home[1]) and not profile.is_live(url):
            raise ConfigurationError(
                f"{setting} is {url!r}, but titles would be requested from {home[0]}, the live "
                f"site; set {home[0]} to a replica, too, or remove {setting}"
            )


def datasets_url(settings: Settings) -> str:
    """Return scheme and host of the datasets.

    Raises ConfigurationError when there is none beside a replica of the pages.
    """
    profile = SITES[ID_SITE]
    host = next(host for host in profile.hosts if host.has_files)
    url = hosts_of(ID_SITE, settings).get(host.setting)
    if url is None:
        raise ConfigurationError(
            f"{host.setting} is not set, and {profile.home_setting} is "
            f"{settings[profile.home_setting]!r}, no host of {profile.name}'s; "
            f"set it to where the datasets are, which may be {host.live}"
        )
    return url


def user_agent(settings: Settings) -> str:
    """Return USER_AGENT, with CONTACT where there is one."""
    contact = f" (+{settings['CONTACT']})" if settings["CONTACT"] else ""
    return f"{settings['USER_AGENT']}{contact}"
