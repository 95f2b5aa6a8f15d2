import type { Command } from "commander";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { writeJson } from "./write-json.ts";

interface Flags {
  readonly zone?: string;
  readonly rule?: string;
}

type Ask = (client: EdgeClient, target: { shieldZoneId: number; ruleId: string }) => Promise<unknown>;

/** `rules recommend` and `rules metrics`. */
export function addRules(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("rules").description("WAF rules of a shield zone.");
  const add = (name: string, summary: string, ask: Ask) =>
    addSubcommand(group, name, summary, [`rules ${name} --zone 101 --rule 942100`])
      .option("--zone <id>", "shield zone (required)")
      .option("--rule <id>", "rule (required)")
      .action(
        edgeAction<Flags>(setup, async (flags, { read, io, call }) => {
          const shieldZoneId = read.id("zone", flags.zone, "a shield zone's number");
          const ruleId = read.required("rule", flags.rule, "a rule's id");
          await call(async (client) => {
            if (shieldZoneId === undefined || ruleId === undefined) return;
            await writeJson(io.stdout, await ask(client, { shieldZoneId, ruleId }));
          });
        }),
      );
  add(
    "recommend",
    "Ask the platform's AI about a triggered rule. The answer takes seconds.",
    (client, target) => client.getRecommendation(target),
  );
  add("metrics", "Show the platform's own counts of a rule over the past 28 days.", (client, target) =>
    client.getRuleMetrics(target),
  );
}
