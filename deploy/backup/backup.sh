#!/bin/sh
# Writes a backup into a new folder while the service runs: the database, and the archive's folder if there is one.
#
#   DATABASE_URL=postgres://... backup.sh /backups/2026-11-22 [/other/place/for/the/key]
#
# Without DATABASE_URL, the address of the running service's embedded Postgres is used. The pseudonym key is copied only into
# the second folder: whoever has the database and the key can undo the pseudonyms. pg_dump must be at least as new as the server.
set -eu
target=${1:?usage: backup.sh TARGET [KEY_TARGET]}
key_target=${2:-}
data=${LONGWATCH_DATA_DIR:-.longwatch}
archive=${LONGWATCH_ARCHIVE_DIR:-$data/archive}
key=${LONGWATCH_KEY_DIR:-$data}/pseudonym.key

fail() {
  echo "backup.sh: $1" >&2
  exit 1
}

for program in pg_dump pg_restore; do
  command -v "$program" >/dev/null || fail "$program is missing: install the Postgres client (Debian: postgresql-client)"
done
if [ -z "${DATABASE_URL:-}" ] && [ -r "$data/runtime.json" ]; then
  DATABASE_URL=$(sed -n 's/.*"databaseUrl":"\([^"]*\)".*/\1/p' "$data/runtime.json")
fi
[ -n "${DATABASE_URL:-}" ] ||
  fail "DATABASE_URL is not set and no service runs on $data: set it, or start the service, or set LONGWATCH_DATA_DIR"
[ ! -e "$target" ] || fail "$target exists already: name a new folder"
[ -z "$key_target" ] || [ -r "$key" ] ||
  fail "there is no key $key: set LONGWATCH_KEY_DIR, or leave KEY_TARGET out if LONGWATCH_PSEUDONYM_KEY holds the key"

# The folder gets its name when everything is in it.
part=$target.part
umask 077
rm -rf "$part"
mkdir -p "$part"
# The database comes first: files of the archive never change, and a file that the dump does not know does no harm.
pg_dump --format=custom --file="$part/longwatch.dump" "$DATABASE_URL" ||
  fail "pg_dump failed. If it names a version mismatch: install the client of the server's version (Debian: postgresql-client-18)"
if [ -f "$archive/archive.json" ]; then
  mkdir "$part/archive"
  (cd "$archive" && tar --exclude=./tmp -cf - .) | (cd "$part/archive" && tar -xf -)
fi
# A file that was replaced after the dump began may have been deleted before it was copied.
pg_restore --data-only --table=archive_files --file="$part/files" "$part/longwatch.dump" ||
  fail "pg_restore cannot read the dump: install the Postgres client that pg_dump belongs to"
awk -F '\t' '
  /^COPY / { sub(/^[^(]*\(/, ""); sub(/\).*/, ""); n = split($0, names, ", "); for (i = 1; i <= n; i++) at[names[i]] = i; next }
  $at["retired_at"] == "\\N" && $at["uploaded_at"] == "\\N" && $at["damaged_at"] == "\\N" { print $at["path"] }
' "$part/files" | while read -r name; do
  [ -f "$part/archive/$name" ] || fail "the database names the file $name, which is not in $archive.
Set LONGWATCH_ARCHIVE_DIR to the archive's folder. If it is that folder, run the backup again: the file may have just been
replaced. If that fails too, run 'longwatch archive verify'."
done
rm "$part/files"
(cd "$part" && find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS)
mv "$part" "$target"
if [ -n "$key_target" ]; then
  mkdir -p "$key_target"
  cp "$key" "$key_target/pseudonym.key"
fi
echo "$target holds the backup. To restore it: restore.sh $target"
[ -n "$key_target" ] || echo "The pseudonym key is not in it: keep $key, or LONGWATCH_PSEUDONYM_KEY, in another place."
