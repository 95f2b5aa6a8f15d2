import { readListedEvents } from "#db/coverage/hour-contents.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { listDays } from "#db/privacy/retention.ts";
import { many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { hashEventKey, unpackLogIdHashes } from "#model/waf-event.ts";
import { type Check, type Checked, type Difference, eachPart } from "./check.ts";
import { showIds } from "./show-ids.ts";

/** Checks that every event that the list showed first has its record. */
export async function checkRecords({ db, zoneId, onStep, ...span }: Checked): Promise<Check> {
  const differences: Difference[] = [];
  let events = 0;
  const firstDay = (await listDays(db, "raw_blocks"))[0] ?? toDay(span.to);
  const first = Math.max(span.from, Math.min(span.to, Date.parse(firstDay)));
  for (const { from, to } of eachPart({ from: first, to: span.to }, HOUR_MS)) {
    onStep("raw records", (from - span.from) / (span.to - span.from));
    const listed = await readListedEvents(db, zoneId, { from, to });
    if (listed.length === 0) continue;
    events += listed.length;
    const packed = await readLogIdHashes(db, zoneId, { fromMs: from, toMs: to, days: [toDay(from)] });
    const kept = new Set(packed.flatMap(unpackLogIdHashes));
    const missing = listed.filter((event) => !kept.has(hashEventKey(event)));
    if (missing.length === 0) continue;
    const found = listed.length - missing.length;
    differences.push({
      at: from,
      ruleId: null,
      expected: listed.length,
      found,
      detail: showIds(
        "without",
        missing.map(({ logId }) => logId),
      ),
    });
  }
  return {
    name: "raw records",
    sides: ["events of the list", "records"],
    compared: `${many(events, "event")} of the list`,
    differences,
    notes: first > span.from ? [`before ${firstDay} UTC: records are past their retention`] : [],
    failure: null,
  };
}
