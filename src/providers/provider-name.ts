/** Names are part of paths (`/p/<name>/…`) and compared byte for byte, so there is one way to write each. */
export const PROVIDER_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
