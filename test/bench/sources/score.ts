import { toSpread } from "../spread.ts";
import type { ReplayedAlert } from "./replay-messages.ts";
import {
  ATTACK_KINDS,
  type AttackKind,
  DAYS,
  type DrawnAttack,
  type DrawnKind,
  type Nuisance,
} from "./zone.ts";

/** An alert that starts this long after an attack still finds it. */
const LATE_MINUTES = 5;

/** Which alerts count, and which attacks they should find. */
export interface Question {
  readonly isCounted: (alert: ReplayedAlert) => boolean;
  readonly kinds: readonly AttackKind[];
}

export interface SourceScore {
  readonly attacks: number;
  readonly recall: number;
  readonly byKind: Readonly<Record<AttackKind, number | null>>;
  readonly falseAlerts: number;
  readonly falsePerZoneDay: number;
  readonly precision: number;
  readonly f1: number;
  readonly medianMinutes: number | null;
  /** How many false alerts started during each kind of nuisance, most first; `none`: during no nuisance. */
  readonly causes: Readonly<Record<string, number>>;
}

/** Scores strictly: an alert counts by its start alone, within an attack or up to five minutes after it. */
export function createSourceScore({ isCounted, kinds }: Question) {
  const found = new Map<DrawnKind, [found: number, all: number]>();
  const delays: number[] = [];
  const causes = new Map<string, number>();
  let [zones, trueAlerts, falseAlerts] = [0, 0, 0];

  function add(
    attacks: readonly DrawnAttack[],
    nuisances: readonly Nuisance[],
    alerts: readonly ReplayedAlert[],
  ): void {
    zones += 1;
    const counted = alerts.filter(isCounted);
    const isIn = ({ from, to }: DrawnAttack, { openedAt }: ReplayedAlert) =>
      openedAt >= from && openedAt <= to + LATE_MINUTES;
    for (const one of attacks) {
      const hit = counted.filter((alert) => isIn(one, alert)).toSorted((a, b) => a.openedAt - b.openedAt)[0];
      const [before, all] = found.get(one.kind) ?? [0, 0];
      found.set(one.kind, [before + (hit === undefined ? 0 : 1), all + 1]);
      if (hit !== undefined && kinds.some((kind) => kind === one.kind)) delays.push(hit.openedAt - one.from);
    }
    for (const alert of counted) {
      if (attacks.some((one) => isIn(one, alert))) trueAlerts += 1;
      else {
        falseAlerts += 1;
        const during = nuisances.filter(
          ({ from, to }) => alert.openedAt >= from && alert.openedAt <= to + 60,
        );
        // The rarer ones say more.
        const cause = `${alert.kind}: ${during.map(({ name }) => name).sort(byRarity)[0] ?? "none"}`;
        causes.set(cause, (causes.get(cause) ?? 0) + 1);
      }
    }
  }

  function read(): SourceScore {
    const asked = kinds.map((kind) => found.get(kind) ?? ([0, 0] as const));
    const attacks = asked.reduce((sum, [, all]) => sum + all, 0);
    const recall = attacks > 0 ? asked.reduce((sum, [hit]) => sum + hit, 0) / attacks : 0;
    const precision = trueAlerts + falseAlerts > 0 ? trueAlerts / (trueAlerts + falseAlerts) : 0;
    const byKind = ATTACK_KINDS.map((kind) => {
      const [hit, all] = found.get(kind) ?? [0, 0];
      return [kind, all > 0 ? hit / all : null];
    });
    return {
      attacks,
      recall,
      byKind: Object.fromEntries(byKind) as Record<AttackKind, number | null>,
      falseAlerts,
      falsePerZoneDay: zones > 0 ? falseAlerts / (zones * (DAYS - 1)) : 0,
      precision,
      f1: recall + precision > 0 ? (2 * recall * precision) / (recall + precision) : 0,
      medianMinutes: toSpread(delays)?.median ?? null,
      causes: Object.fromEntries([...causes].sort(([, a], [, b]) => b - a)),
    };
  }

  return { add, read };
}

const RARITY = ["marketing push", "noisy deployment", "the owner's scan", "bigger scanner", "small campaign"];

function byRarity(a: string, b: string): number {
  const place = (name: string) => (RARITY.includes(name) ? RARITY.indexOf(name) : RARITY.length);
  return place(a) - place(b);
}
