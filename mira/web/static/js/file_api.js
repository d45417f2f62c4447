// Files that go with a message: sent as they are, named by id afterwards.

import { ApiError } from "./api.js";

export const MOST = 10; // files with one message
export const ACCEPTED = ".jpg,.jpeg,.png,.gif,.webp,.pdf,.docx,.xlsx,.txt,.csv,.json";

const MB = 1024 * 1024;
const LARGEST = { image: 5 * MB, document: 32 * MB };
const IMAGES = /^image\/(jpeg|png|gif|webp)$/;

/** Where a file is: as it came, or an image as `small` or `large`. */
export const at = (id, size = "") => `/v1/files/${id}${size && `?size=${size}`}`;

/** Why `file` would not be taken, or "" if there is nothing to be seen from here. */
export function refusal(file) {
  const kind = IMAGES.test(file.type) ? "image" : "document";
  if (file.size === 0) return "This file is empty.";
  if (file.size <= LARGEST[kind]) return "";
  return `${kind === "image" ? "An image" : "A document"} may have ${LARGEST[kind] / MB} MB at most.`;
}

/** Send a file. `onProgress(share)` hears how much has gone; `signal` breaks it off. Resolves to
 *  what the server says of it. XMLHttpRequest, since fetch does not tell how far it is. */
export function upload(file, { onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/files?${new URLSearchParams({ name: file.name })}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status < 300) resolve(request.response);
      else reject(new ApiError(request.status, request.response));
    };
    request.onerror = () => reject(new Error("The server cannot be reached."));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Take back a file that no message has. One that has gone already is as good. */
export const takeBack = (id) =>
  fetch(at(id), { method: "DELETE", credentials: "same-origin" }).catch(() => undefined);
