// Requests to the API. The server does not send an answer again that has not changed.
import { correctClock } from './data.js';

export class ApiError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

// Answers {body, etag}, or {unchanged: true} where etag is still good. Throws ApiError; status 0: no answer at all.
export async function get(path, { etag, signal } = {}) {
  let response;
  try {
    response = await fetch(path, { headers: etag ? { 'If-None-Match': etag } : {}, signal, cache: 'no-store' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The server cannot be reached.');
  }
  correctClock(response.headers.get('date'));
  if (response.status === 304) {
    await response.text(); // else the browser reports the request as aborted
    return { unchanged: true };
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, body?.error ?? `The server answered ${response.status}.`, Number(response.headers.get('retry-after')) || null);
  if (body === null) throw new ApiError(0, 'The answer was cut off.');
  return { body, etag: response.headers.get('etag') };
}

// The same path with other parameters; null removes one.
export function withParams(path, params) {
  const url = new URL(path, 'http://page');
  for (const [key, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') url.searchParams.delete(key);
    else url.searchParams.set(key, value);
  }
  return url.pathname + url.search;
}
