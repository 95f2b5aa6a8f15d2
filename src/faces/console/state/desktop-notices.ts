import { useState } from "react";

const STORED = "longwatch-desktop-notices";

/** Whether the reader asked for a desktop notification of each new alert in this browser. */
export function areDesktopNoticesOn(): boolean {
  return (
    typeof Notification !== "undefined" &&
    Notification.permission === "granted" &&
    localStorage.getItem(STORED) === "on"
  );
}

export function useDesktopNotices() {
  const [isOn, setOn] = useState(areDesktopNoticesOn);
  return {
    canAsk: typeof Notification !== "undefined" && Notification.permission !== "denied",
    isOn,
    toggle: async () => {
      if (isOn) localStorage.removeItem(STORED);
      else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(STORED, "on");
      setOn(areDesktopNoticesOn());
    },
  };
}
