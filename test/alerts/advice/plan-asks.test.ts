import fc from "fast-check";
import { expect, test } from "vitest";
import { planAsks } from "#alerts/rules/advice/advice-status.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AdviceRow } from "#model/advice.ts";
import type { Severity } from "#model/kinds.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const spike = (id: number, severity: Severity, minutesAgo: number) => ({
  id,
  severity,
  zoneId: 101,
  ruleId: `94${id}`,
  openedAtMs: NOW - minutesAgo * MINUTE_MS,
});
const asked = (minutesAgo: number): AdviceRow => ({
  zoneId: 999,
  ruleId: "elsewhere",
  askedAtMs: NOW - minutesAgo * MINUTE_MS,
  success: true,
  errorKey: null,
});

test("the most severe are asked about first, then the newest", () => {
  const spikes = [
    spike(1, "warning", 1),
    spike(2, "critical", 9),
    spike(3, "critical", 5),
    spike(4, "info", 0),
  ];
  const plan = planAsks({ spikes, rows: [], nowMs: NOW, budgetPerHour: 30, atMost: 10 });
  expect(plan.asks.map(({ id }) => id)).toEqual([3, 2, 1, 4]);
});

test("asks of the last hour use up the budget, older ones do not", () => {
  const spikes = [spike(1, "critical", 1), spike(2, "warning", 1), spike(3, "warning", 2)];
  const rows = [asked(1), asked(59), asked(60), asked(300)];
  const plan = planAsks({ spikes, rows, nowMs: NOW, budgetPerHour: 3, atMost: 10 });
  expect(plan.asks.map(({ id }) => id)).toEqual([1]);
  expect(plan.overBudget).toBe(2);
});

test("no hour ever holds more asks than the budget, whenever spikes open and however the asks end", () => {
  const episode = fc.record({
    rule: fc.nat(20),
    minute: fc.nat(240),
    end: fc.constantFrom("ASKING", "EDGE_TIMEOUT", "MODEL_FAILED", "NO_RECOMMENDATION", null),
  });
  fc.assert(
    fc.property(fc.array(episode, { maxLength: 60 }), fc.integer({ min: 0, max: 6 }), (episodes, budget) => {
      const rows: AdviceRow[] = [];
      for (let minute = 0; minute < 300; minute += 1) {
        const nowMs = NOW + minute * MINUTE_MS;
        const open = episodes.filter((candidate) => candidate.minute <= minute);
        const spikes = open.map(({ rule, minute }, id) => ({
          ...spike(id, "warning", 0),
          ruleId: String(rule),
          openedAtMs: NOW + minute * MINUTE_MS,
        }));
        const { asks } = planAsks({ spikes, rows, nowMs, budgetPerHour: budget, atMost: 4 });
        for (const { id, zoneId, ruleId } of asks) {
          const errorKey = open[id]?.end ?? null;
          rows.push({ zoneId, ruleId, askedAtMs: nowMs, success: errorKey === null, errorKey });
        }
      }
      const hour = 60 * MINUTE_MS;
      for (const { askedAtMs } of rows)
        expect(
          rows.filter((row) => row.askedAtMs >= askedAtMs && row.askedAtMs < askedAtMs + hour).length,
        ).toBeLessThanOrEqual(budget);
    }),
    { numRuns: 60 },
  );
});
