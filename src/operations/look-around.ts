import { countSelfAlerts } from "../../db/alerting/alert-reports.ts";
import type { Queryable } from "../../db/client.ts";
import { countGivenUp } from "../../db/delivery/deliveries.ts";
import { readHeldCounts } from "../../db/ingest/held-pages.ts";
import { readKeyProblem } from "../../db/privacy/pseudonym-keys.ts";
import { readReplicas } from "../../db/service/replicas.ts";
import { KEY_REPORT_MS } from "../../jobs/alerting/report-service.ts";
import { horizonAt, startOfHour } from "../model/horizon.ts";
import type { Looked } from "./list-attention.ts";
import { readChannels } from "./read-channels.ts";
import { assessService } from "./service-life.ts";

/** Reads the facts about the whole service that may need attention, all at once. The zones are read by the caller. */
export async function lookAround(db: Queryable, now: number): Promise<Omit<Looked, "zones" | "unpolled">> {
  const [channels, replicas, keyProblem, held, givenUp, selfAlerts] = await Promise.all([
    readChannels(db),
    readReplicas(db),
    readKeyProblem(db, KEY_REPORT_MS),
    readHeldCounts(db),
    countGivenUp(db, startOfHour(horizonAt(now))),
    countSelfAlerts(db),
  ]);
  return { channels, service: assessService(replicas), keyProblem, held, givenUp, selfAlerts };
}
