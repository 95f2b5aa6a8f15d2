import { expect, test, vi } from "vitest";
import { axisTicks } from "#faces/console/components/axis-ticks.ts";
import { formatClock, formatMoment, formatOffset, parseMoment } from "#faces/console/style/words.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";

const START = Date.UTC(2026, 10, 21, 21);

function starts(first: number, count: number, widthMs: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index * widthMs);
}

test("an axis of hours names each midnight by its day and every sixth hour between", () => {
  vi.stubEnv("TZ", "UTC");
  const ticks = axisTicks(starts(START, 74, HOUR_MS), "hour");
  vi.unstubAllEnvs();
  expect(ticks.slice(0, 5)).toEqual([
    { index: 3, label: "11-22", isMinor: false },
    { index: 9, label: "06:00", isMinor: true },
    { index: 15, label: "12:00", isMinor: true },
    { index: 21, label: "18:00", isMinor: true },
    { index: 27, label: "11-23", isMinor: false },
  ]);
});

test("an axis has at most thirteen labels, of days or months, and few of them where there is little room", () => {
  const days = axisTicks(starts(Date.UTC(2026, 7, 1), 120, DAY_MS), "day");
  expect(days.length).toBeLessThanOrEqual(13);
  expect(days[0]).toEqual({ index: 0, label: "08-01", isMinor: false });
  expect(days.filter(({ isMinor }) => !isMinor).length).toBeLessThanOrEqual(4);
  expect(axisTicks([Date.UTC(2026, 2, 1)], "month")[0]?.label).toBe("2026-03");
});

test("a browser that has chosen UTC shows times in UTC, and any other in the viewer's zone", () => {
  vi.stubEnv("TZ", "America/St_Johns");
  const at = Date.UTC(2026, 10, 22, 2, 7, 12, 5);
  const show = (stored: string | null) => {
    vi.stubGlobal("localStorage", { getItem: () => stored });
    const moment = formatMoment(at, { seconds: true });
    expect(parseMoment(moment.replace(" ", "T"))).toBe(at - 5);
    return [moment, formatClock(at, { millis: true }), formatOffset(at)];
  };
  expect(show("on")).toEqual(["2026-11-22 02:07:12", "02:07:12.005", "UTC"]);
  expect(show(null)).toEqual(["2026-11-21 22:37:12", "22:37:12.005", "UTC−3:30"]);
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});
