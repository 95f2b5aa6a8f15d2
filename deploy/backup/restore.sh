#!/bin/sh
# Restores a backup of backup.sh into an empty database and an empty archive folder. The service must not run.
#
#   DATABASE_URL=postgres://.../empty LONGWATCH_DATA_DIR=/var/lib/longwatch restore.sh /backups/2026-11-22
set -eu
source=${1:?usage: restore.sh SOURCE}
data=${LONGWATCH_DATA_DIR:-.longwatch}
archive=${LONGWATCH_ARCHIVE_DIR:-$data/archive}

fail() {
  echo "restore.sh: $1" >&2
  exit 1
}

for program in psql pg_restore; do
  command -v "$program" >/dev/null || fail "$program is missing: install the Postgres client (Debian: postgresql-client)"
done
[ -n "${DATABASE_URL:-}" ] || fail "DATABASE_URL is not set: it must name an empty database"
[ -f "$source/SHA256SUMS" ] || fail "$source is not a backup of backup.sh, or not a complete one: it has no SHA256SUMS"
(cd "$source" && sha256sum --quiet --check SHA256SUMS) || fail "$source is damaged: use another backup"
tables=$(psql --no-psqlrc --quiet --tuples-only --no-align \
  --command "select count(*) from pg_tables where schemaname = 'public'" "$DATABASE_URL") ||
  fail "the database cannot be read: start Postgres, or correct DATABASE_URL"
[ "$tables" = 0 ] || fail "the database has $tables tables: name an empty one in DATABASE_URL (createdb)"
if [ -d "$source/archive" ]; then
  [ -z "$(ls -A "$archive" 2>/dev/null)" ] || fail "$archive is not empty: set LONGWATCH_ARCHIVE_DIR to an empty folder"
fi

pg_restore --no-owner --no-privileges --exit-on-error --dbname="$DATABASE_URL" "$source/longwatch.dump"
if [ -d "$source/archive" ]; then
  mkdir -p "$archive"
  (cd "$source/archive" && tar -cf - .) | (cd "$archive" && tar -xf -)
fi
cat <<END
The backup is restored. Now, in this order:
  1. Put pseudonym.key back into ${LONGWATCH_KEY_DIR:-$data}, or set LONGWATCH_PSEUDONYM_KEY.
  2. Repeat the erasures since the backup: longwatch erase --ip ... --reason ...
  3. Revoke the keys again that were revoked since the backup: longwatch keys list; longwatch keys revoke ...
  4. Start the service, then compare: longwatch archive verify; longwatch verify --zone ... --from -72h --to now
END
