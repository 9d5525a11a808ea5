/** Names are part of paths (`/p/<name>/…`) and compared byte for byte, so there is one way to write each. */
export const PROVIDER_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** The name of the provider that PROVIDER_URL and PROVIDER_KEY describe; no stored one may have it. */
export const DEFAULT_PROVIDER = 'default';
