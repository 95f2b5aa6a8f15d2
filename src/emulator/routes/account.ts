/** The routes of the account: API keys, hostnames, DNS zones and applications. */

import { ApplicationRequest, ContainerRequest, toContainerTemplate } from "#emulator/container-request.ts";
import type { Call, EmulatorContext } from "#emulator/emulator-context.ts";
import { empty, json, legacyError, type Reply } from "#emulator/reply.ts";
import type { App, Resources, Volume } from "#emulator/resources.ts";
import {
  containerError,
  containerProblem,
  containerValidation,
  type FieldError,
  readContainerBody,
  readLegacyBody,
} from "./bodies.ts";

const MAX_PAGE = 2_147_483_647;
const MIN_PER_PAGE = 5;
const MAX_PER_PAGE = 1_000;

/** The text of a parameter. The texts of a repeated one are joined, which is no number, so the answer is a refusal. */
function textOf(call: Call, name: string): string | null {
  return call.query.has(name) ? call.query.getAll(name).join() : null;
}

function readInteger(text: string | null, fallback: number): number | undefined {
  if (text === null) return fallback;
  return /^-?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns one page of the account's keys (platform API spec 4.1). A page size out of range becomes the nearest limit.
 */
export function listApiKeys(context: EmulatorContext, call: Call): Reply {
  const page = readInteger(textOf(call, "page"), 1);
  const perPage = readInteger(textOf(call, "perPage"), MAX_PER_PAGE);
  if (page === undefined || page < 1 || page > MAX_PAGE) {
    return legacyError(
      400,
      "model.invalid",
      "page",
      `The value '${textOf(call, "page")}' is not valid: page must be 1 to ${MAX_PAGE}.`,
    );
  }
  if (perPage === undefined) {
    const rule = `perPage must be ${MIN_PER_PAGE} to ${MAX_PER_PAGE}`;
    return legacyError(
      400,
      "model.invalid",
      "perPage",
      `The value '${textOf(call, "perPage")}' is not valid: ${rule}.`,
    );
  }
  const size = Math.min(Math.max(perPage, MIN_PER_PAGE), MAX_PER_PAGE);
  const { apiKeys } = context.resources;
  return json(200, {
    Items: apiKeys.slice((page - 1) * size, page * size),
    CurrentPage: page,
    TotalItems: apiKeys.length,
    HasMoreItems: page * size < apiKeys.length,
  });
}

const KEY_TYPES = ["ecdsa", "rsa"] as const;

/** Changes the private key type of a hostname (platform API spec 4.2). `KeyType` is 0 for ECDSA, 1 for RSA; ECDSA when left out. */
export function setHostnameKeyType(context: EmulatorContext, call: Call): Reply {
  const id = call.params["id"] ?? "";
  const pullZone = /^\d{1,10}$/.test(id) ? context.resources.pullZones.get(Number(id)) : undefined;
  if (pullZone === undefined)
    return legacyError(404, "pullZone.not_found", "Id", `The pull zone ${id} does not exist.`);
  const body = readLegacyBody(call);
  if ("refusal" in body) return body.refusal;
  const { Hostname: hostname, KeyType: keyType = 0 } = body.value;
  if (typeof hostname !== "string" || hostname === "") {
    return legacyError(
      400,
      "pullzone.validation",
      "Hostname",
      "Hostname is required and must be a non-empty string.",
    );
  }
  const type = typeof keyType === "number" ? KEY_TYPES[keyType] : undefined;
  if (type === undefined) {
    return legacyError(
      400,
      "pullzone.validation",
      "KeyType",
      `The value ${JSON.stringify(keyType)} is not valid: KeyType must be 0 or 1.`,
    );
  }
  const known = pullZone.hostnames.find((entry) => entry.name === hostname.toLowerCase());
  if (known === undefined) {
    return legacyError(
      404,
      "pullzone.hostname_not_found",
      "Hostname",
      `The hostname ${hostname} does not belong to pull zone ${id}.`,
    );
  }
  known.keyType = type;
  return empty(context.switches.keyTypeStatus === "200" ? 200 : 204);
}

const NAME = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

/** Returns whether a DNS zone name is still free (platform API spec 4.3). */
export function checkDnsZone(context: EmulatorContext, call: Call): Reply {
  const body = readLegacyBody(call);
  if ("refusal" in body) return body.refusal;
  const name = body.value["Name"];
  const normal = typeof name === "string" ? name.toLowerCase().replace(/\.$/, "") : "";
  if (!NAME.test(normal)) {
    return legacyError(
      400,
      "dnsZone.validation",
      "Name",
      `The value ${JSON.stringify(name ?? null)} is not valid: Name must be a domain name.`,
    );
  }
  return json(200, { Available: !context.resources.takenDnsNames.includes(normal) });
}

/** Adds a container template to an application and answers 201 with it (platform API spec 4.4). */
export function addContainer(context: EmulatorContext, call: Call): Reply {
  const appId = call.params["appId"] ?? "";
  const app = context.resources.apps.get(appId);
  if (app === undefined)
    return containerError(context, { status: 404, detail: "Application not found.", appId });
  const body = readContainerBody(context, call, ContainerRequest.omit({ id: true }));
  if ("refusal" in body) return body.refusal;
  if (app.containers.some((known) => known.name === body.value.name)) {
    return containerValidation(context, appId, [
      { field: "name", message: `A container named ${body.value.name} exists already.` },
    ]);
  }
  // A new template gets its own id, whatever id the body has.
  const template = toContainerTemplate({ ...body.value, id: undefined }, app, context.resources);
  app.containers.push(template);
  return json(201, template);
}

function findConflicts(app: App, body: ApplicationRequest): FieldError[] {
  const errors: FieldError[] = [];
  if (body.autoScaling.max < body.autoScaling.min)
    errors.push({ field: "autoScaling.max", message: "autoScaling.max must be at least autoScaling.min." });
  for (const [index, template] of (body.containerTemplates ?? []).entries()) {
    if (template.id && !app.containers.some((known) => known.id === template.id)) {
      errors.push({
        field: `containerTemplates.${index}.id`,
        message: `The application has no container ${template.id}.`,
      });
    }
  }
  return errors;
}

function findShrinking(app: App, body: ApplicationRequest): FieldError[] {
  return (body.volumes ?? []).flatMap((wanted, index) => {
    const known = app.volumes.find((volume) => volume.name === wanted.name);
    if (known === undefined || wanted.size >= known.size) return [];
    return [
      {
        field: `volumes.${index}.size`,
        message: `A volume can only grow: ${wanted.name} has ${known.size} GB.`,
      },
    ];
  });
}

function newVolume(name: string, size: number, instances: number, resources: Resources): Volume {
  const ids = Array.from({ length: instances }, () => `${name}-${resources.newId(8)}`);
  return {
    id: `${name}-${resources.newId(6)}`,
    name,
    size,
    instances: ids.map((id) => ({ id, attached: true })),
  };
}

/**
 * Replaces the volumes. A volume that the body leaves out is detached. It stays, with its instances, until they are
 * deleted.
 */
function replaceVolumes(app: App, body: ApplicationRequest, resources: Resources): Volume[] {
  const wanted = body.volumes ?? [];
  const kept = app.volumes.filter(
    (volume) => volume.instances.length > 0 || wanted.some(({ name }) => name === volume.name),
  );
  for (const volume of kept) {
    const size = wanted.find(({ name }) => name === volume.name)?.size;
    if (size === undefined) for (const instance of volume.instances) instance.attached = false;
    else volume.size = size;
  }
  const added = wanted.filter(({ name }) => !app.volumes.some((volume) => volume.name === name));
  return [...kept, ...added.map(({ name, size }) => newVolume(name, size, body.autoScaling.min, resources))];
}

/** Replaces an application's whole configuration: omitted members are reset (platform API spec 4.5). */
export function updateApplication(context: EmulatorContext, call: Call): Reply {
  const appId = call.params["appId"] ?? "";
  const app = context.resources.apps.get(appId);
  if (app === undefined) return containerProblem(404, "Application not found.", appId);
  const body = readContainerBody(context, call, ApplicationRequest);
  if ("refusal" in body) return body.refusal;
  const conflicts = findConflicts(app, body.value);
  if (conflicts.length > 0) return containerValidation(context, appId, conflicts);
  const shrinking = findShrinking(app, body.value);
  if (shrinking.length > 0) {
    const detail = "The application cannot take this configuration.";
    return containerError(context, {
      status: 422,
      title: "Unprocessable Entity",
      detail,
      appId,
      errors: shrinking,
    });
  }
  const { name, containerTemplates = [], volumes: _, ...settings } = body.value;
  app.volumes = replaceVolumes(app, body.value, context.resources);
  app.containers = (containerTemplates ?? []).map((template) =>
    toContainerTemplate(template, app, context.resources),
  );
  app.name = name;
  app.settings = settings;
  return json(200, { id: app.id });
}

/** Deletes every instance of a volume, unless one is still attached (platform API spec 4.6). */
export function deleteVolumeInstances(context: EmulatorContext, call: Call): Reply {
  const appId = call.params["appId"] ?? "";
  const app = context.resources.apps.get(appId);
  if (app === undefined)
    return containerError(context, { status: 404, detail: "Application not found.", appId });
  const volume = app.volumes.find((known) => known.id === call.params["volumeId"]);
  if (volume === undefined)
    return containerError(context, { status: 404, detail: "Volume not found.", appId });
  if (volume.instances.length === 0)
    return containerError(context, { status: 404, detail: "Volume instances not found.", appId });
  const attached = volume.instances.filter((instance) => instance.attached);
  if (attached.length > 0) {
    const errors = attached.map(({ id }) => ({
      field: "volumeId",
      message: `Instance ${id} is still attached.`,
    }));
    return containerError(context, {
      status: 400,
      detail: "All volume instances must be detached first.",
      appId,
      errors,
    });
  }
  const ids = volume.instances.map((instance) => instance.id);
  volume.instances = [];
  return json(200, { ids });
}
