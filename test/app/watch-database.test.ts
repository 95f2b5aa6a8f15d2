import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createDatabaseWatch, type TroubleSource } from "#app/watch-database.ts";
import { systemClock } from "#lib/clock.ts";

const WAIT = { timeout: 5_000, interval: 5 };
const STOPPED = { headline: "down", isDiskFull: false };
const FULL = { headline: "full", isDiskFull: true };

function watch({ graceMs = 100, stableMs = 100 } = {}) {
  const told: string[] = [];
  const watched = createDatabaseWatch({
    clock: systemClock,
    graceMs,
    stableMs,
    onTrouble: ({ headline }) => void told.push(headline),
    onRecovered: ({ headline }) => void told.push(`${headline} is over`),
  });
  onTestFinished(() => watched.stop());
  return {
    told,
    failed: (source: TroubleSource, trouble: typeof STOPPED) => watched.failed(source, trouble),
    recovered: (source: TroubleSource) => watched.recovered(source),
  };
}

test("an outage within the grace raises no alert", async () => {
  const { failed, recovered, told } = watch({ graceMs: 200, stableMs: 10 });
  failed("server", STOPPED);
  recovered("server");
  await delay(400);
  expect(told).toEqual([]);
});

test("an outage beyond the grace raises one alert, however often it is reported, and one end", async () => {
  const { failed, recovered, told } = watch();
  for (let n = 0; n < 5; n++) failed("server", STOPPED);
  failed("probe", { headline: "no answer", isDiskFull: false });
  await expect.poll(() => told, WAIT).toEqual(["down"]);
  failed("server", STOPPED);
  recovered("server");
  recovered("probe");
  await expect.poll(() => told, WAIT).toEqual(["down", "down is over"]);
});

test("a full disk raises the alert at once: no restart helps", () => {
  const { failed, told } = watch({ graceMs: 60_000 });
  failed("disk", FULL);
  failed("disk", FULL);
  expect(told).toEqual(["full"]);
});

test("a server that comes up and fails again is one outage", async () => {
  const { failed, recovered, told } = watch({ graceMs: 10, stableMs: 60_000 });
  failed("server", STOPPED);
  await expect.poll(() => told, WAIT).toEqual(["down"]);
  for (let n = 0; n < 3; n++) {
    recovered("server");
    failed("server", FULL);
  }
  await delay(50);
  expect(told).toEqual(["down"]);
});

test.each<TroubleSource>(["probe", "disk"])(
  "the alert stays open while the %s still reports trouble",
  async (source) => {
    const { failed, recovered, told } = watch({ graceMs: 10, stableMs: 10 });
    failed("server", STOPPED);
    failed(source, STOPPED);
    await expect.poll(() => told, WAIT).toEqual(["down"]);
    recovered("server");
    await delay(100);
    expect(told).toEqual(["down"]);
    recovered(source);
    await expect.poll(() => told, WAIT).toEqual(["down", "down is over"]);
  },
);
