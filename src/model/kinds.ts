/** The kinds that the detector opens: `new-rule` for a rule that was first seen within a day, `sources` for the source series. */
export const SPIKE_KINDS = ["spike", "new-rule", "sources"] as const;

/** The kinds that routes, silences and messages match. `self`: an alert of Longwatch about itself. */
export const SUBJECT_KINDS = [...SPIKE_KINDS, "self"] as const;

/** A group alert notifies for several spikes. */
export const GROUP_KIND = "group";

/** Every kind of a stored alert. */
export const ALERT_KINDS = [...SPIKE_KINDS, GROUP_KIND, "self"] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];
