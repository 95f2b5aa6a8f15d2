import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { RulesAnswer } from "../../http/routes/v1/rules.ts";
import type { Span } from "../state/span.ts";
import { call } from "./client.ts";

export type RuleItem = RulesAnswer["items"][number];

/** The rules with the most events in the span. */
export function useRules(
  { zone, fromMs, toMs }: { readonly zone: number | null } & Pick<Span, "fromMs" | "toMs">,
  limit = 100,
) {
  return useQuery({
    queryKey: ["rules", zone, fromMs, toMs, limit],
    queryFn: ({ signal }) =>
      call<RulesAnswer>("/api/v1/rules", {
        query: { zone, from: Math.floor(fromMs), to: Math.ceil(toMs), limit },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
}
