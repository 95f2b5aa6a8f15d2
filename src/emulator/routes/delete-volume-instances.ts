import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, type Reply } from "../reply.ts";
import { containerError } from "./container-error.ts";

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
