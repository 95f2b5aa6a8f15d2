/**
 * The way a channel shows a later message about the same alert. `post-anew`: a new message, which notifies people.
 * `update-in-place`: a change of the earlier message, which notifies nobody. `same-incident`: the receiver recognises
 * the alert by its key and does not notify people again.
 */
export type LaterMessage = "post-anew" | "update-in-place" | "same-incident";
