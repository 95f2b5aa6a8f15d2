import { escapeMarkup } from "#lib/text.ts";

export interface AtomEntry {
  readonly alertId: number;
  readonly title: string;
  /** Epoch ms. */
  readonly publishedAt: number;
  readonly updatedAt: number;
  /** State, severity and others: `[scheme, term]`. */
  readonly categories: readonly (readonly [scheme: string, term: string])[];
  /** Plain text. */
  readonly lines: readonly string[];
  /** The operator's links, in the order of the message. */
  readonly links: readonly { readonly title: string; readonly href: string }[];
}

export interface AtomFeed {
  /** Identifies the installation: letters and digits. */
  readonly instanceId: string;
  readonly title: string;
  readonly entries: readonly AtomEntry[];
}

const FEED_PATH = "/api/v1/alerts.atom";

/**
 * Returns an Atom document (RFC 4287). Ids are tag URIs (RFC 4151), which depend neither on the time nor on the
 * server's address. A transition of an alert updates its entry. All text is plain and escaped. The links lead to the
 * API and, as `related`, to the operator's own addresses.
 */
export function renderAtom({ instanceId, title, entries }: AtomFeed): string {
  const authority = `tag:${instanceId}.longwatch.invalid,2026`;
  const updatedAt = entries.reduce((latest, entry) => Math.max(latest, entry.updatedAt), 0);
  return [
    '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n',
    line(1, "id", `${authority}:alerts`),
    line(1, "title", title),
    line(1, "updated", toTime(updatedAt)),
    `  <author><name>Longwatch</name></author>\n  <generator>Longwatch</generator>\n`,
    `  <link rel="self" type="application/atom+xml" href="${FEED_PATH}"/>\n`,
    ...entries.map((entry) => renderEntry(authority, entry)),
    "</feed>\n",
  ].join("");
}

function renderEntry(authority: string, entry: AtomEntry): string {
  const { alertId, title, publishedAt, updatedAt, categories, lines, links } = entry;
  return [
    "  <entry>\n",
    line(2, "id", `${authority}:alerts/${alertId}`),
    line(2, "title", title),
    line(2, "published", toTime(publishedAt)),
    line(2, "updated", toTime(updatedAt)),
    `    <link rel="alternate" type="application/json" href="/api/v1/alerts/${alertId}"/>\n`,
    ...links.map(
      ({ title, href }) =>
        `    <link rel="related" href="${escapeMarkup(href)}" title="${escapeMarkup(title)}"/>\n`,
    ),
    ...categories.map(
      ([scheme, term]) =>
        `    <category scheme="urn:longwatch:${escapeMarkup(scheme)}" term="${escapeMarkup(term)}"/>\n`,
    ),
    `    <content type="text">${escapeMarkup(lines.join("\n"))}</content>\n`,
    "  </entry>\n",
  ].join("");
}

function line(depth: number, name: string, text: string): string {
  return `${"  ".repeat(depth)}<${name}>${escapeMarkup(text)}</${name}>\n`;
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}
