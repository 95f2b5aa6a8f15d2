import { noteOperations } from "#alerts/notes.ts";
import { alertOperations } from "#alerts/operations/alerts.ts";
import { explainAlert } from "#alerts/operations/verdict.ts";
import { silenceOperations } from "#alerts/silences/silences.ts";
import { testRoutes } from "#alerts/test-routes.ts";
import { listArchiveDays, showArchiveStatus } from "#archive/operations/archive-status.ts";
import { compareEvents } from "#archive/search/compare-events.ts";
import { findEvents } from "#archive/search/find-events.ts";
import { listRevisions, searchEvents } from "#archive/search/search-events.ts";
import { forwardOperations } from "#delivery/forwarding/forwarding.ts";
import { channelOperations } from "#delivery/operations/channels.ts";
import { deliveryOperations } from "#delivery/operations/deliveries.ts";
import { showBlockList } from "#detection/block-list/block-list.ts";
import { conditionOperations } from "#detection/custom-conditions.ts";
import { listProposed, tryExclusion } from "#detection/exclusions/try-exclusion.ts";
import { knownOperations } from "#detection/known-sources.ts";
import { reviewOperations } from "#detection/review/saved-plans.ts";
import { showTrend } from "#detection/waf-rules/rule-replay.ts";
import { ruleOperations } from "#detection/waf-rules/rules.ts";
import { spikeOperations } from "#detection/waf-rules/spikes.ts";
import { showDigest } from "#health/digest.ts";
import { listAccounts } from "#health/service/accounts.ts";
import { listJobs } from "#health/service/jobs.ts";
import { showOverview } from "#health/service/overview.ts";
import { showPrivacy, showSettings } from "#health/service/settings.ts";
import { showStatus } from "#health/service/status.ts";
import { listZones } from "#health/service/zones.ts";
import { quarantineOperations } from "#ingest/quarantine.ts";
import { auditOperations } from "#people/audit-trail.ts";
import { keyOperations } from "#people/keys/keys.ts";
import { viewOperations } from "#people/saved-views.ts";
import { coverageOperations } from "#proof/coverage/coverage.ts";
import { listGaps } from "#proof/coverage/gaps.ts";
import { runOperations } from "#proof/coverage/runs.ts";
import type { Operation } from "./operation.ts";

/** Everything that a person or a program can ask or do. */
export const OPERATIONS = [
  showStatus,
  showOverview,
  showDigest,
  listZones,
  listAccounts,
  listJobs,
  showSettings,
  showPrivacy,
  searchEvents,
  compareEvents,
  findEvents,
  ...ruleOperations,
  ...spikeOperations,
  showTrend,
  ...knownOperations,
  ...conditionOperations,
  tryExclusion,
  listProposed,
  ...reviewOperations,
  ...auditOperations,
  ...deliveryOperations,
  ...channelOperations,
  ...alertOperations,
  explainAlert,
  showBlockList,
  ...silenceOperations,
  ...noteOperations,
  testRoutes,
  ...keyOperations,
  ...viewOperations,
  ...coverageOperations,
  ...runOperations,
  listGaps,
  ...quarantineOperations,
  ...forwardOperations,
  listArchiveDays,
  showArchiveStatus,
  listRevisions,
] as const satisfies readonly Operation[];
