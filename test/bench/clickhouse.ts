import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { openClickHouse } from "./search/clickhouse.ts";
import { openDataSet, SEARCH_NOW } from "./search/data-set.ts";
import { ASKED_ZONE } from "./search/day-events.ts";
import { askDuck, listForms } from "./search/duck-answers.ts";
import { listQuestions } from "./search/questions.ts";

interface ClickHouseOptions {
  readonly events: number;
  readonly keep: string | null;
  /** The folder into which `chdb` was installed. */
  readonly installed: string;
  readonly onProgress: (done: number, what: string) => void;
}

/** The open days are in Postgres only. */
const ARCHIVED_TO = startOfDay(SEARCH_NOW - 3 * DAY_MS);

/** Asks ClickHouse and a DuckDB of its own the questions of the archive, over the archived days. Returns a line for each. */
export async function benchClickHouse(options: ClickHouseOptions): Promise<string[]> {
  const { events, keep, installed, onProgress } = options;
  const folder = keep ?? mkdtempSync(path.join(tmpdir(), "longwatch-clickhouse-"));
  const set = await openDataSet({ events, folder, isKept: keep !== null, onProgress });
  try {
    const files = (zone: number) => path.join(folder, `archive/events/zone=${zone}/day=*/*.parquet`);
    const clickHouse = openClickHouse(installed, (zone) => `file('${files(zone)}', Parquet)`);
    const lines = [`ClickHouse ${clickHouse.version}, ${events} events`];
    const [row] = await set.duck.query(
      `select ip from waf_events where zone_id = ${ASKED_ZONE} group by ip order by count(*) desc, ip limit 1 offset 300`,
    );
    for (const { name, search } of listQuestions(String(row?.["ip"]))) {
      const asked = { ...search, from: search.from - SEARCH_NOW + ARCHIVED_TO, to: ARCHIVED_TO };
      const [form] = listForms(asked);
      if (form === undefined) continue;
      const expected = await askDuck(set.duck, ASKED_ZONE, asked, form);
      const startedMs = performance.now();
      const answer = clickHouse.ask(ASKED_ZONE, asked);
      const tookMs = Math.round(performance.now() - startedMs);
      lines.push(`${isDeepStrictEqual(answer, expected) ? "equal " : "DIFFERS"} ${tookMs} ms  ${name}`);
    }
    return lines;
  } finally {
    await set.close();
  }
}
