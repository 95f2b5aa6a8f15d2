import fc from "fast-check";
import { expect, test } from "vitest";
import { EventLogEntry } from "#adapters/edge/contract/event-log-list.ts";
import { toListEvent } from "#stages/ingest/to-list-event.ts";
import { toPlainListEvent } from "#stages/ingest/to-plain-list-event.ts";

const text = fc.string({ unit: "binary", maxLength: 12 });
const odd = fc.oneof(fc.constantFrom("", null, 0, 7, true, "2024"), fc.jsonValue({ maxDepth: 1 }));
/** Mostly what the platform documents, sometimes anything. */
const usually = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 40, arbitrary: value }, { weight: 1, arbitrary: odd });

const header = fc.record({
  Name: usually(fc.constantFrom("Host", "User-Agent", "user-agent", "USER-AGENT", "Cookie")),
  Value: usually(text),
});
const record = fc.record(
  {
    RemoteIp: usually(fc.constantFrom("203.0.113.7", "203.0.113.*", "::1")),
    Url: usually(text),
    Message: usually(text),
    Headers: usually(fc.array(header, { maxLength: 4 })),
  },
  { requiredKeys: [] },
);
const label = usually(fc.constantFrom("64500", "NL", "Blocked", "blocked", "Logged", "Challenged", "none"));
const entry = fc.record(
  {
    logId: usually(text),
    timestamp: usually(fc.oneof(fc.maxSafeInteger(), fc.date({ noInvalidDate: true }).map(Number))),
    log: fc.oneof(
      { weight: 8, arbitrary: record.map((value) => JSON.stringify(value)) },
      usually(record),
      fc.constantFrom("not JSON", "[]", '"text"', "\ufeff{}"),
    ),
    labels: usually(
      fc.record({ asn: label, country: label, ruleId: label, status: label }, { requiredKeys: [] }),
    ),
  },
  { requiredKeys: ["logId", "timestamp", "log"] },
);

test("an entry that is read without the schema becomes the very event that the schema's way makes of it", () => {
  let plain = 0;
  const property = fc.property(entry, (given) => {
    const event = toPlainListEvent(given);
    if (event === null) return;
    plain += 1;
    expect(event).toEqual(toListEvent(EventLogEntry.parse(given)));
  });
  fc.assert(property, { numRuns: 5_000 });
  expect(plain).toBeGreaterThan(200);
});
