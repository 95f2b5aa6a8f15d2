/** The routes of applications. */
import { ApplicationRequest, ContainerRequest, toContainerTemplate } from "../container-request.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, type Reply } from "../reply.ts";
import type { App, Resources, Volume } from "../resources.ts";
import {
  containerError,
  containerProblem,
  containerValidation,
  type FieldError,
  readContainerBody,
} from "./bodies.ts";

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
