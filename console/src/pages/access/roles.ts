import type { ResponseOf } from '../../api/client';

export type Token = ResponseOf<'/admin/v1/tokens', 'get'>['data'][number];
export type Role = Token['role'];

/** What each role may do, in one sentence. */
export const ROLES: Record<Role, { label: string; may: string }> = {
  admin: { label: 'Administrator', may: 'Does everything.' },
  viewer: { label: 'Viewer', may: 'Reads everything and changes nothing.' },
  lead: {
    label: 'Lead of teams',
    may: 'Sees its teams and manages all their keys, within the limits of the teams.',
  },
  team: {
    label: 'Member of teams',
    may: 'Sees its teams, and has keys of its own there if the team allows it.',
  },
  metrics: { label: 'Metrics', may: 'Reads GET /metrics, nothing else. Cannot sign in to the console.' },
};
