import { request } from "undici";

/** One row of a flat search in the emulator's form. */
export interface SearchRow {
  readonly logId: string;
  readonly timestamp: number;
  readonly log: unknown;
  readonly fields: Readonly<Record<string, string>>;
}

export interface ListEntry {
  readonly logId: string;
  readonly timestamp: number;
  readonly [member: string]: unknown;
}

export interface ListPage {
  readonly logs: readonly ListEntry[] | null;
  readonly hasMoreData: boolean;
  readonly continuationToken: string | null;
  readonly [member: string]: unknown;
}

/** The members of a search or export body that select events. */
export interface Selection {
  readonly from: number;
  readonly to: number;
  readonly query?: unknown;
  readonly filters?: unknown;
}

/** Thrown for an answer that cannot be changed: a failure, or a body that is no JSON. It is passed on unchanged. */
export class Unbendable extends Error {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;

  constructor(status: number, contentType: string, body: Buffer) {
    super(`the platform answered ${status}`);
    this.status = status;
    this.contentType = contentType;
    this.body = body;
  }
}

const PAGE_SIZE = 500;
/** The emulator refuses windows that reach further into the future. */
const FUTURE_MS = 4 * 60_000;

export type TruePlatform = ReturnType<typeof createTruePlatform>;

/** Returns a client that sends one caller's requests to the emulator, with that caller's key. */
export function createTruePlatform(baseUrl: string, accessKey: string, now: () => number) {
  async function ask(path: string, body?: unknown): Promise<unknown> {
    const headers = { accesskey: accessKey, "content-type": "application/json" };
    const posted = body === undefined ? {} : ({ method: "POST", body: JSON.stringify(body) } as const);
    const answer = await request(baseUrl + path, { headers, ...posted });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    try {
      if (answer.statusCode === 200) return JSON.parse(bytes.toString());
    } catch {
      // A truncated body is passed on like a failure.
    }
    throw new Unbendable(answer.statusCode, String(answer.headers["content-type"] ?? ""), bytes);
  }

  return {
    ask,

    /** Returns one page of a day's list; `path` names the day and the token. */
    list: async (path: string) => (await ask(path)) as ListPage,

    /**
     * Returns all events of a selection that the platform shows now, newest first; `reach` extends it on both sides.
     */
    async loadRows(zone: number, selection: Selection, reach = 0): Promise<SearchRow[]> {
      const { query, filters } = selection;
      const from = Math.max(0, selection.from - reach);
      const to = Math.max(selection.to, Math.min(selection.to + reach, now() + FUTURE_MS));
      const rows = new Map<string, SearchRow>();
      for (let page = 0; ; page++) {
        const body = { from, to, query, filters, page, pageSize: PAGE_SIZE };
        const answer = await ask(`/shield/event-logs/${zone}/search`, body);
        const found = answer as { rows: SearchRow[] | null; totalPages: number };
        // An event that becomes visible meanwhile moves a row to the next page, so each row is taken once.
        for (const row of found.rows ?? []) rows.set(row.logId, row);
        if (page + 1 >= found.totalPages) return [...rows.values()];
      }
    },
  };
}
