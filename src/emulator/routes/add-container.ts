import { ContainerRequest } from "../container-request.ts";
import { toContainerTemplate } from "../container-template.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, type Reply } from "../reply.ts";
import { containerError, containerValidation, readContainerBody } from "./container-error.ts";

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
