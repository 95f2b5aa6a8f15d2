/**
 * Figures for an emulator that holds about two million events: start, resident memory, and how long a naive answer
 * over one of its two zones takes. Run with `node test/bench/emulator-memory.ts [events per second]`.
 */

import { createEmulator } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";

const eventsPerSecond = Number(process.argv[2] ?? 8);
const rssMb = () => Math.round(process.memoryUsage.rss() / 1e6);

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  console.log(`${name.padEnd(44)} ${Math.round(performance.now() - startedAt)} ms, rss ${rssMb()} MB`);
  return result;
}

const emulator = await timed("start", () => createEmulator({ eventsPerSecond }));
const headers = { AccessKey: emulator.accessKey, "content-type": "application/json" };
const window = { from: emulator.now() - 72 * HOUR_MS, to: emulator.now() };

async function search(body: Record<string, unknown>): Promise<number> {
  const path = `${emulator.url}/shield/event-logs/101/search`;
  const response = await fetch(path, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...window, ...body }),
  });
  return ((await response.json()) as { total: number }).total;
}

const described = await timed("describe", async () => (await fetch(`${emulator.url}/_emulator`)).json());
const { shieldZones } = described as { shieldZones: { events: number }[] };
console.log(`events ${shieldZones.reduce((sum, zone) => sum + zone.events, 0)}`);
await timed("flat page of 500 out of a zone", () => search({ pageSize: 500 }));
await timed("free text", () => search({ query: "jndi" }));
await timed("grouped by rule, 500 buckets", () => search({ groupBy: ["ruleId"], buckets: 500 }));
await timed("grouped by address", () => search({ groupBy: ["ip"] }));
await timed("export of a zone, read and dropped", async () => {
  const path = `${emulator.url}/shield/event-logs/101/export`;
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(window) });
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += chunk.length;
  return bytes;
});
await timed("oracle of a zone, read and dropped", async () => {
  const response = await fetch(`${emulator.url}/_emulator/events/101`);
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += chunk.length;
  return bytes;
});
await emulator.close();
