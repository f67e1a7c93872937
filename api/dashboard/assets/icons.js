/** Icons as paths on a 24 by 24 grid, in the style of the icons on the proxy's pages. */

export const ICONS = {
  open: "M14 5h5v5M19 5l-8 8M17 14v5H5V7h5",
  start: "M8 5.2v13.6L19 12z",
  stop: "M7 7h10v10H7z",
  archive: "M3.5 5h17v4.5h-17zM5 9.5V19h14V9.5M10 13.2h4",
  restore: "M4.5 9.5h9a5.5 5.5 0 0 1 0 11H9M8.5 5.5l-4 4 4 4",
  remove: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 10.5v5.5M13.5 10.5v5.5",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  plus: "M12 5v14M5 12h14",
  search: "M17 11a6 6 0 1 1-12 0 6 6 0 0 1 12 0zM15.4 15.4l4.1 4.1",
  warning: "M12 4.2 3.2 19.5h17.6zM12 10v4.2M12 16.8v.1",
  safe: "M12 3.5 5 6v5.5c0 4.3 2.9 7.7 7 9 4.1-1.3 7-4.7 7-9V6zM9 12l2.2 2.2L15.2 10",
  leave: "M10 4.5H5.5v15H10M14 8l4 4-4 4M18 12H9.5",
  copy: "M9 9h10.5v10.5H9zM15 9V4.5H4.5V15H9",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7 7 17",
  unknown: "M9 9.3a3 3 0 1 1 4.3 2.7c-.9.5-1.3 1-1.3 2M12 17v.1",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20c.8-3.6 3.8-5.5 7.5-5.5s6.700 1.900 7.500 5.500",
};
