import { z } from "zod";
import { listOf } from "./list-of.ts";

/** The ids of the volume instances that were deleted; platform API spec 2.12. */
export const VolumeInstancesDeletion = z.looseObject({
  ids: listOf(z.string()),
});
export type VolumeInstancesDeletion = z.infer<typeof VolumeInstancesDeletion>;
