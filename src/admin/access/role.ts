import { Reflector } from '@nestjs/core';

/**
 * What a user of the admin API may do:
 * - `admin`: everything
 * - `viewer`: read everything
 * - `lead`: what `team` may, and manage all keys of its teams, and which keys their members may have
 * - `team`: see its own teams, and manage its own keys there if the team allows it
 * - `metrics`: read the metrics
 */
export type Role = 'admin' | 'viewer' | 'lead' | 'team' | 'metrics';
export const ROLES = ['admin', 'viewer', 'lead', 'team', 'metrics'] as const satisfies readonly Role[];

/** Of the columns in Postgres. */
export const TEAMS_OF_ROLE = "(role IN ('lead', 'team')) = (teams IS NOT NULL)";

/** Whether the role is one of certain teams, and sees no others. */
export function isOfTeams(role: Role): boolean {
  return role === 'lead' || role === 'team';
}

/**
 * Decorator of an admin handler or controller: the roles that may use it besides `admin`. Without it, only `admin` may. A
 * handler that allows `team` or `lead` must restrict what it shows and changes to `@CurrentScope()`. `lead` may use what
 * `team` may.
 */
export const Roles = Reflector.createDecorator<readonly Exclude<Role, 'admin'>[]>();

/** @param declared by the handler or its controller, see Roles */
export function mayUse(role: Role, declared: readonly Role[] = []): boolean {
  return role === 'admin' || declared.includes(role) || (role === 'lead' && declared.includes('team'));
}
