/** The parts of an event's URL that a search can use. */
export const URL_PARTS = ["host", "path"] as const;
export type UrlPart = (typeof URL_PARTS)[number];

const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/**
 * Returns a part of a URL. The host has no user, no port and lower-case ASCII letters; '' if the URL does not begin with a
 * scheme. The path has no query and no fragment, is not decoded, and is '/' if the URL has none. Neither contains a `?` or a
 * `#`. `toUrlPartSql` computes the same.
 */
export function toUrlPart(part: UrlPart, url: string): string {
  if (url === "") return "";
  const [head = ""] = url.split(/[?#]/, 1);
  const [, authority, path = head] = /^[^/]+:\/\/([^/]*)(.*)$/s.exec(head) ?? [];
  if (part === "path") return path === "" ? "/" : path;
  const host = authority?.split("@").at(-1) ?? "";
  const bare = host.startsWith("[") ? (/^\[[^\]]*\]/.exec(host)?.[0] ?? "") : host.split(":", 1)[0];
  return (bare ?? "").replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Returns SQL for a part of the URL in `column`; '' if the URL is null or empty. Postgres and DuckDB read it alike. It has no
 * regular expression: Postgres would take up to three times as long.
 */
export function toUrlPartSql(part: UrlPart, column: string): string {
  const scheme = `split_part(${column}, '/', 1)`;
  const hasScheme = `strpos(${column}, '://') > 1 and strpos(${column}, '://') = length(${scheme})
    and translate(${scheme}, '?#', '') = ${scheme}`;
  const withoutQuery = (text: string) => `split_part(split_part(${text}, '?', 1), '#', 1)`;
  const [head, authority] = [withoutQuery(column), withoutQuery(`split_part(${column}, '/', 3)`)];
  if (part === "path") {
    const behind = `substr(${head}, length(${scheme}) + length(${authority}) + 3)`;
    return `case when ${column} <> '' then
      coalesce(nullif(case when ${hasScheme} then ${behind} else ${head} end, ''), '/') else '' end`;
  }
  const host = `split_part(${authority}, '@', -1)`;
  const bare = `case when substr(${host}, 1, 1) <> '[' then split_part(${host}, ':', 1)
    when strpos(${host}, ']') > 0 then split_part(${host}, ']', 1) || ']' else '' end`;
  // Most hosts are in lower case, and translate takes longer than everything else.
  return `case when not (${hasScheme}) then '' when ${authority} = lower(${authority}) then ${bare}
    else translate(${bare}, '${UPPER}', '${UPPER.toLowerCase()}') end`;
}
