#!/bin/sh
# Starts a node: takes secrets from files, and becomes Scrapyd, so that signals reach it.
#   NAME_FILE=PATH   sets NAME to what stands in PATH, for the names below; others are refused
#   SCRAPYD_CONF     scrapyd.conf, if not the one beside this script
# With arguments it becomes that command instead, with the same secrets.
set -eu

for name in REDIS_URL SCRAPYD_REDIS_URL SCRAPYD_USERNAME SCRAPYD_PASSWORD SCRAPYD_DEPLOY_PASSWORD \
    DATABASE_URL MONGO_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY PROXY_POOLS \
    ALERT_WEBHOOK ALERT_URLS; do
    eval "path=\${${name}_FILE:-}"
    if [ -n "$path" ]; then
        if [ ! -r "$path" ]; then
            echo "${name}_FILE is $path, which can't be read" >&2
            exit 1
        fi
        # Without the line break at its end, which editors add.
        export "$name=$(cat "$path")"
        unset "${name}_FILE"
    fi
done

# A misspelt one would leave its secret out.
for name in $(awk 'BEGIN { for (name in ENVIRON) if (name ~ /_FILE$/) print name }'); do
    case $name in
    # Of OpenSSL and boto3.
    SSL_CERT_FILE | AWS_CONFIG_FILE | AWS_SHARED_CREDENTIALS_FILE) ;;
    AWS_WEB_IDENTITY_TOKEN_FILE | AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE) ;;
    *)
        echo "$name is set, and nothing reads it; correct or remove it" >&2
        exit 1
        ;;
    esac
done

[ $# -eq 0 ] || exec "$@"

conf="${SCRAPYD_CONF:-$(dirname "$0")/scrapyd.conf}"
if [ ! -r "$conf" ]; then
    echo "SCRAPYD_CONF is $conf, which can't be read" >&2
    exit 1
fi
# Scrapyd reads the one in the current folder, where logs and copies of eggs go: a link, so that
# whoever edits it edits the one that counts.
if ! [ "$conf" -ef scrapyd.conf ]; then
    [ ! -L scrapyd.conf ] || rm scrapyd.conf
    ln -s "$(readlink -f "$conf")" scrapyd.conf
fi
exec "${PYTHON:-python3}" -P -m scrapyd --pidfile=
