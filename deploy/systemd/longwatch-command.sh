#!/bin/sh
# The command line beside deploy/systemd/longwatch.service: runs with the user, the settings and the secrets of the service.
# Install it as /usr/local/bin/longwatch and run it as root: longwatch status
set -eu

# The second run is inside the unit that the first one makes.
if [ -z "${INSIDE_UNIT-}" ]; then
  secrets=
  for file in /etc/longwatch/*; do
    [ ! -f "$file" ] || secrets="$secrets --property=LoadCredential=${file##*/}:$file"
  done
  # The names of secrets hold no blanks: each of the words in $secrets is an option.
  exec systemd-run --quiet --pty --pipe --wait --collect --service-type=exec \
    --property=DynamicUser=yes --property=User=longwatch \
    --property=StateDirectory=longwatch --property=StateDirectoryMode=0700 \
    --property=EnvironmentFile=/etc/longwatch.env $secrets \
    --setenv=LONGWATCH_DATA_DIR=/var/lib/longwatch --setenv=NODE_ENV=production --setenv=INSIDE_UNIT=1 \
    "$0" "$@"
fi

for file in "${CREDENTIALS_DIRECTORY-/nonexistent}"/*; do
  [ ! -f "$file" ] || export "${file##*/}_FILE=$file"
done
exec /usr/bin/node /opt/longwatch/src/main.ts "$@"
