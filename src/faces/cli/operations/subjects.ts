import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { alertOperations } from "#operations/alerts/alerts.ts";
import { auditOperations } from "#operations/audit/audit-trail.ts";
import { coverageOperations } from "#operations/coverage/coverage.ts";
import { listGaps } from "#operations/coverage/gaps.ts";
import { channelOperations } from "#operations/deliveries/channels.ts";
import { deliveryOperations } from "#operations/deliveries/deliveries.ts";
import { keyOperations } from "#operations/keys/keys.ts";
import { ruleOperations } from "#operations/rules/rules.ts";
import { spikeOperations } from "#operations/rules/spikes.ts";
import { showTrend } from "#operations/rules/trends.ts";
import { listJobs } from "#operations/service/jobs.ts";
import { listZones } from "#operations/service/zones.ts";
import { silenceOperations } from "#operations/silences/silences.ts";
import { knownOperations } from "#operations/sources/known-sources.ts";
import { testChannelCommand } from "../channels/test-channel.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import type { StoreIo } from "../store/store-command.ts";
import { subjectCommand } from "./operation-command.ts";

export function alertsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "List, show, acknowledge, resolve and mark alerts.";
  return subjectCommand("alerts", description, alertOperations, readConfig, io);
}

export function auditCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("audit", "Show the audit trail.", auditOperations, readConfig, io);
}

export function deliveriesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "List deliveries to the channels, and replay dead deliveries.";
  return subjectCommand("deliveries", description, deliveryOperations, readConfig, io);
}

export function channelsCommand(
  readConfig: () => Config,
  readServiceConfig: () => Config,
  io: StoreIo = createProcessIo(),
): Command {
  const description = "List the channels, send test messages, and replay dead deliveries.";
  const others = [testChannelCommand(readServiceConfig, io)];
  return subjectCommand("channels", description, channelOperations, readConfig, io, others);
}

export function keysCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "Create, list and revoke the keys of this service's own API.";
  return subjectCommand("keys", description, keyOperations, readConfig, io);
}

export function knownCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "List, add and remove known sources, which raise no source alert.";
  return subjectCommand("known", description, knownOperations, readConfig, io);
}

export function silencesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "Add, list, extend and end silences.";
  return subjectCommand("silences", description, silenceOperations, readConfig, io);
}

export function zonesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("zones", "List zones and their state.", [listZones], readConfig, io);
}

export function coverageCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "Show whether every hour is complete.";
  return subjectCommand("coverage", description, coverageOperations, readConfig, io);
}

export function gapsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("gaps", "List the hours that are lost, and why.", [listGaps], readConfig, io);
}

export function rulesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = "Rank rules, show a rule's counts and thresholds, and replay other settings.";
  return subjectCommand("rules", description, ruleOperations, readConfig, io);
}

export function spikesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("spikes", "List spikes and show one.", spikeOperations, readConfig, io);
}

export function trendsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("trends", "Count events over time.", [showTrend], readConfig, io);
}

export function jobsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("jobs", "Show when the background jobs run.", [listJobs], readConfig, io);
}
