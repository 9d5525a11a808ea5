// The gateway's own list: URL and authentication of well-known providers.
export { PRESETS, type Preset } from '../../../../src/providers/presets';
