import { expect, onTestFinished, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { NOW, openEmulator } from "../emulator/support.ts";
import type { Lie } from "../support/liar/lie.ts";
import { startLyingPlatform } from "../support/liar/lying-platform.ts";
import { openIngest, storedRows, ZONE } from "./ingest-support.ts";

const POLL_MS = 30_000;

/** A service that is current, and a platform whose search can hide events of a minute that the list shows. */
async function openWorld() {
  const emulator = await openEmulator({ zones: [ZONE], historyHours: 1, eventsPerSecond: 0.1, lateShare: 0 });
  const liar = await startLyingPlatform({ url: emulator.url, now: () => emulator.now(), isWitnessed: false });
  onTestFinished(() => liar.close());
  const ingest = await openIngest(emulator, { url: liar.url, openHours: 1 });
  const events = { from: NOW, to: NOW + MINUTE_MS };
  const hide = () => liar.tell({ kind: "empty", routes: ["search", "counts"], events } satisfies Lie);
  const readHidden = async () =>
    (await storedRows(ingest.database)).filter(({ at }) => at >= events.from && at < events.to);
  const countSearches = () => liar.requests().get(ZONE)?.search ?? 0;
  /** Polls after another poll interval. Returns the number of searches. */
  const poll = async () => {
    emulator.advance(POLL_MS);
    const before = countSearches();
    await ingest.poll();
    return countSearches() - before;
  };
  await ingest.poll();
  await ingest.walk();
  return { emulator, ingest, hide, readHidden, poll };
}

test("events that the list shows first are resolved by the next poll after the search shows them, with one search for them", async () => {
  const { emulator, ingest, hide, readHidden, poll } = await openWorld();
  const hidden = hide();
  emulator.advance(2 * MINUTE_MS);
  await poll();
  expect(await readHidden()).toEqual([]);
  // The overlap of the search ends before the list is read, so that only a search for the events can find them.
  for (let polls = 0; polls < 8; polls++) await poll();
  await ingest.walk();
  const listed = await readHidden();
  expect(listed.length).toBeGreaterThan(3);
  expect(listed.filter(({ feature, route }) => feature !== null || route !== "list")).toEqual([]);

  expect(await poll()).toBeLessThanOrEqual(2);
  expect((await readHidden()).filter(({ feature }) => feature !== null)).toEqual([]);
  hidden.end();
  expect(await poll()).toBeLessThanOrEqual(2);
  const resolved = await readHidden();
  expect(resolved.map(({ log_id }) => log_id)).toEqual(listed.map(({ log_id }) => log_id));
  expect(
    resolved.filter(({ feature, ja4, ip }) => feature === null || ja4 === null || ip?.includes("*") === true),
  ).toEqual([]);

  // Nothing is left to search for: later polls read the newest minutes only.
  expect(await poll()).toBe(1);
});
