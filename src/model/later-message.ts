/**
 * What a later message about the same alert does on a channel. `post-anew`: a new message, which people notice.
 * `update-in-place`: the earlier message can be changed, which nobody notices. `same-incident`: the receiver knows the
 * alert by its key and does not notify people again.
 */
export type LaterMessage = "post-anew" | "update-in-place" | "same-incident";
