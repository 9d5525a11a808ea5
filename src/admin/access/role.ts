import { Reflector } from '@nestjs/core';

/**
 * What a user of the admin API may do:
 * - `admin`: everything
 * - `viewer`: read everything
 * - `team`: see its own teams, and manage its own keys there if the team allows it
 * - `metrics`: read the metrics
 *
 * @beta
 */
export type Role = 'admin' | 'viewer' | 'team' | 'metrics';
export const ROLES = ['admin', 'viewer', 'team', 'metrics'] as const satisfies readonly Role[];

/** Of the columns in Postgres. */
export const TEAMS_OF_ROLE = "(role = 'team') = (teams IS NOT NULL)";

/**
 * Decorator of an admin handler or controller: the roles that may use it besides `admin`. Without it, only `admin` may. A
 * handler that allows `team` must restrict what it shows to `@CurrentScope()`.
 *
 * @beta
 */
export const Roles = Reflector.createDecorator<readonly Exclude<Role, 'admin'>[]>();

/** @param declared by the handler or its controller, see Roles */
export function mayUse(role: Role, declared: readonly Role[] = []): boolean {
  return role === 'admin' || declared.includes(role);
}
