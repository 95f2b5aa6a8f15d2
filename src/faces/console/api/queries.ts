/** The queries of each subject. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useSpan } from "../state/span.ts";
import { useZones } from "../state/zones.ts";
import {
  ask,
  type Input,
  type Item,
  type Output,
  refreshSubject,
  useChange,
  useOperation,
  useOperationPages,
} from "./ask.ts";
import { type EventScope } from "./search.ts";

export type Alert = Item<"alerts.list">;
export type AlertDetail = Output<"alerts.show">;
export type AlertContext = Output<"alerts.context">;
export type Silence = Item<"silences.list">;
type Matchers = NonNullable<Input<"silences.preview">["matchers"]>;
export type NewSilence = Input<"silences.add"> & { readonly matchers: Matchers };

/** Another alert is another story: the page never shows it below the address of the next. */
const NO_FORMER = { placeholderData: () => undefined };

export const useAlert = (id: string) =>
  useOperation("alerts.show", { id }, { refetchInterval: 30_000, ...NO_FORMER });

export const useAlertContext = (id: string) =>
  useOperation("alerts.context", { id }, { staleTime: 30_000, ...NO_FORMER });

/** The newest alerts of one page. The stream makes them be read again. */
export const useAlerts = (query: Input<"alerts.list">) =>
  useOperation("alerts.list", query, { refetchInterval: 60_000 });

/** Silences page after page, newest first. */
export const useSilences = (state: readonly Silence["state"][]) =>
  useOperationPages("silences.list", { state, limit: 50 }, { refetchInterval: 60_000 });

export const useSilencePreview = (matchers: NewSilence["matchers"]) =>
  useOperation("silences.preview", { matchers }, { enabled: Object.keys(matchers).length > 0 });

/** The zones, or the rules of one, whose counts have changed most since the period before. Asked only where a person wants it. */
export const useChanges = (groupBy: "zone" | "rule", zone: number | null, isWanted: boolean) => {
  const { fromMs, toMs } = useSpan();
  const span = { from: Math.floor(fromMs), to: Math.ceil(toMs) };
  return useOperation(
    "compare.show",
    { groupBy, zone: zone === null ? "all" : String(zone), ...span, limit: 10 },
    { enabled: isWanted, staleTime: 60_000 },
  );
};

/** What people noted about the sites of this time, such as deploys. */
export const useNotes = (sinceMs: number, untilMs: number, zone: number | null) =>
  useOperation(
    "notes.list",
    { since: sinceMs, until: untilMs, zone, limit: 100 },
    { refetchInterval: 60_000, enabled: sinceMs > 0 },
  );

export const useAddSilence = () => useChange("silences.add");

/** Acknowledges, resolves or marks an alert, or resolves one attacker of an incident. */
export function useAlertAct(id: number) {
  const client = useQueryClient();
  return useMutation({
    // A note may stay empty.
    mutationFn: async ({ note = "", ...act }: Omit<Input<"alerts.act">, "ids"> & { note?: string }) => {
      const { items } = await ask("alerts.act", { ...act, ids: [id], ...(note === "" ? {} : { note }) });
      const refused = items.find(({ result }) => result === "refused");
      if (refused !== undefined) throw new Error(refused.detail ?? "refused");
    },
    onSuccess: () => refreshSubject(client, "alerts"),
  });
}

export type Rule = Item<"rules.list">;
export type RuleSeries = Output<"rules.series">;
export type RuleFacts = Output<"rules.facts">;

export interface RuleKey {
  readonly zone: number;
  readonly rule: string;
}

/** A rule's counts with the detector's expectation and threshold. */
export const useRuleSeries = (query: Input<"rules.series">) =>
  useOperation("rules.series", query, { enabled: query.zone !== null && query.rule !== null });

export type ArchiveDay = Item<"archive.days">;
export type CoverageDay = Item<"coverage.days">;
export type CoverageHour = Item<"coverage.list">;
export type CoverageRun = Output<"runs.show">;

export const SELDOM = { staleTime: 60_000, refetchInterval: 300_000 };

/** Every day that is kept, of one zone or of all that the reader may see. */
export const useCoverageDays = (zone: number | null, from: number | null = null) =>
  useOperation("coverage.days", { zone, from }, SELDOM);

/** Backfills and verifications, newest first. Read every two seconds while one is not finished. */
export const useCoverageRuns = () =>
  useOperation(
    "runs.list",
    {},
    {
      refetchInterval: ({ state: { data } }) =>
        data?.items.some(({ endedAt }) => endedAt === null) === true ? 2_000 : 60_000,
    },
  );

export const useStartRun = () => useChange("runs.start");

export type Overview = Output<"overview.show">;

/** The answer that several parts of the overview share. Zones that the reader did not choose are left out. */
export function useOverview() {
  const { asked, isShown } = useZones();
  const { fromMs, toMs } = useSpan();
  const query = { zone: asked, from: Math.floor(fromMs), to: Math.ceil(toMs) };
  return useOperation("overview.show", query, {
    select: (found) => ({
      ...found,
      zones: found.zones.filter(({ id }) => isShown(id)),
      rules: found.rules.filter(({ zoneId }) => isShown(zoneId)),
      attention: found.attention.filter(({ zoneId }) => isShown(zoneId)),
    }),
  });
}

/** The same of other zones and another time. Nothing is asked without a zone. */
export const useOverviewOf = ({ zones, fromMs, toMs }: Pick<EventScope, "zones" | "fromMs" | "toMs">) => {
  const zone = zones.map(({ id }) => id).join(",");
  const query = { zone, from: Math.floor(fromMs), to: Math.ceil(toMs) };
  return useOperation("overview.show", query, { enabled: zone !== "", staleTime: 60_000 });
};
