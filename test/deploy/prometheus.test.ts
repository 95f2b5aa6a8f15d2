import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { findProgram } from "../support/find-program.ts";
import { metricsIn, ownMetrics } from "./metric-names.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const FOLDER = path.join(ROOT, "deploy/prometheus");
const promtool = findProgram("promtool");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "runbook_url", string>>;
}

const file = parse(readFileSync(path.join(FOLDER, "longwatch.rules.yaml"), "utf8")) as {
  groups: readonly { rules: readonly Rule[] }[];
};
const rules = file.groups.flatMap((group) => group.rules);

test("every metric of the Prometheus rules is one that the service exposes", async () => {
  const known = await ownMetrics();
  for (const { alert, expr } of rules)
    for (const metric of metricsIn(expr))
      expect([alert, known]).toEqual([alert, expect.arrayContaining([metric])]);
});

test("every Prometheus rule has a severity and a runbook page that exists", () => {
  for (const { alert, labels, annotations } of rules) {
    const page = annotations.runbook_url.replace("https://longwatch.example/", "");
    expect([alert, labels.severity, existsSync(path.join(ROOT, page))]).toEqual([
      alert,
      expect.stringMatching(/^(warning|critical)$/),
      true,
    ]);
  }
});

test("every Prometheus rule has a case in the file of unit tests", () => {
  const cases = readFileSync(path.join(FOLDER, "longwatch.rules.test.yaml"), "utf8");
  for (const { alert } of rules)
    expect(cases).toMatch(new RegExp(`alertname: ${alert}\\n\\s+exp_alerts:\\n`));
});

test.skipIf(promtool === null)(
  `the Prometheus rules pass their unit tests${promtool === null ? " (skipped: promtool is not on PATH)" : ""}`,
  () => {
    const run = (...args: readonly string[]) =>
      execFileSync(promtool ?? "", args, { cwd: FOLDER, encoding: "utf8" });
    expect(run("check", "rules", "longwatch.rules.yaml")).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(run("test", "rules", "longwatch.rules.test.yaml")).toContain("SUCCESS");
  },
);
