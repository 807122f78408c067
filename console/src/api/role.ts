// Which role may do what.

import { currentSession } from './http.ts';
import type { Role } from './types.ts';

const RANK: Record<Role, number> = { viewer: 0, analyst: 1, admin: 2 };

/** Whether the person who is logged in has this role, or one above it. */
export function can(role: Role): boolean {
  const session = currentSession();
  return session !== null && RANK[session.role] >= RANK[role];
}
