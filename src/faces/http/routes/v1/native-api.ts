import type { FastifyInstance } from "fastify";
import { OPERATIONS } from "#operations/index.ts";
import { addOperations } from "../../operations.ts";
import { addAlertStream } from "./alert-stream.ts";
import { addAlertsAtom } from "./alerts-atom.ts";
import type { ApiDeps } from "./api-deps.ts";
import { addArchiveDays } from "./archive-days.ts";
import { addCoverage } from "./coverage.ts";
import { addCoverageDays } from "./coverage-days.ts";
import { addCoverageRules } from "./coverage-rules.ts";
import { addCoverageRuns } from "./coverage-runs.ts";
import { addCoverageWithdrawals } from "./coverage-withdrawals.ts";
import { addEtag } from "./etag.ts";
import { addEventRevisions } from "./event-revisions.ts";
import { addGaps } from "./gaps.ts";
import { addOverview } from "./overview.ts";
import { addRoutingTest } from "./routing-test.ts";

const ROUTES: readonly ((app: FastifyInstance, deps: ApiDeps) => void)[] = [
  addAlertStream,
  addAlertsAtom,
  addCoverage,
  addGaps,
  addOverview,
  addArchiveDays,
  addCoverageDays,
  addCoverageRules,
  addCoverageRuns,
  addCoverageWithdrawals,
  addEventRevisions,
  addRoutingTest,
];

/** The native API: alerts, silences, trends, rules, spikes, coverage, gaps, deliveries, zones, status. */
export function addNativeApi(app: FastifyInstance, deps: ApiDeps): void {
  app.addHook("onSend", async (request, reply, payload) =>
    request.routeOptions.url?.startsWith("/api/v1/") === true ? addEtag(request, reply, payload) : payload,
  );
  const { archive: db, ...parts } = deps;
  addOperations(app, OPERATIONS, { ...parts, db });
  for (const addRoutes of ROUTES) addRoutes(app, deps);
}
