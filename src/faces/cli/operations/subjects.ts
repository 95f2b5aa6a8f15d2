import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { listZones } from "#operations/service/zones.ts";
import { silenceOperations } from "#operations/silences/silences.ts";
import { knownOperations } from "#operations/sources/known-sources.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import type { StoreIo } from "../store/store-command.ts";
import { subjectCommand } from "./operation-command.ts";

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
