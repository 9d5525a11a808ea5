/** How many leading characters of a key are shown anywhere. More must not leave the page's memory. */
const SHOWN_LENGTH = 12;

/** A key, a refresh token or a device code. */
const SECRET = /pt[nrd]_[0-9A-Za-z]{38}/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What was typed, and the whole key in it. Of a secret, the text keeps only what is shown anyway. */
export function withoutKey(typed: string): { text: string; key: string | null } {
  const secret = SECRET.exec(typed)?.[0];
  if (secret !== undefined)
    return { text: secret.slice(0, SHOWN_LENGTH), key: secret.startsWith('ptn_') ? secret : null };
  return { text: /^\s*pt[nrd]_/.test(typed) ? typed.trim().slice(0, SHOWN_LENGTH) : typed, key: null };
}

/** Whether the request log may have it and nothing faster does. */
export function isForLog(text: string): boolean {
  return text.length > 1 && !UUID.test(text) && !/^pt[nrd]_/.test(text);
}

/** Whether it looks like an ID that a program made, such as `req_011CQ3b8`: the log is searched for it unasked. */
export function looksLikeId(text: string): boolean {
  return (
    isForLog(text) && text.length >= 8 && /\d/.test(text) && /^[\w.:-]+$/.test(text) && /[a-z]/i.test(text)
  );
}
