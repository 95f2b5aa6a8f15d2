import type { Command } from "commander";
import { addSubcommand, type EdgeRun, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { writeJson } from "./write-json.ts";

interface Flags {
  readonly zone?: string;
  readonly rule?: string;
}

function readTarget(flags: Flags, { read }: EdgeRun): { shieldZoneId: number; ruleId: string } | undefined {
  const shieldZoneId = read.id("zone", flags.zone, "a shield zone's number");
  const ruleId = read.required("rule", flags.rule, "a rule's id");
  return shieldZoneId === undefined || ruleId === undefined ? undefined : { shieldZoneId, ruleId };
}

/** `rules recommend` and `rules metrics`. */
export function addRules(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("rules").description("WAF rules of a shield zone.");
  addSubcommand(
    group,
    "recommend",
    "Ask the platform's AI about a triggered rule. The answer takes seconds.",
    ["rules recommend --zone 101 --rule 942100"],
  )
    .option("--zone <id>", "shield zone (required)")
    .option("--rule <id>", "rule (required)")
    .action(
      edgeAction<Flags>(setup, async (flags, run) => {
        const target = readTarget(flags, run);
        await run.call(async (client) => {
          if (target !== undefined) await writeJson(run.io.stdout, await client.getRecommendation(target));
        });
      }),
    );
  addSubcommand(group, "metrics", "Show the platform's own counts of a rule over the past 28 days.", [
    "rules metrics --zone 101 --rule 942100",
  ])
    .option("--zone <id>", "shield zone (required)")
    .option("--rule <id>", "rule (required)")
    .action(
      edgeAction<Flags>(setup, async (flags, run) => {
        const target = readTarget(flags, run);
        await run.call(async (client) => {
          if (target !== undefined) await writeJson(run.io.stdout, await client.getRuleMetrics(target));
        });
      }),
    );
}
