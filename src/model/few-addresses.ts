/** A rule's spike of which fewer addresses send most is listed and notifies nobody, unless it pages. */
export const FEW_ADDRESSES = 3;
