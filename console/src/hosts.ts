// Hosts of sites.

import type { Site } from './api/types.ts';

/** A host that a site serves. */
export function hostOf(sites: Pick<Site, 'hosts'>[]): string {
  const hosts = sites.flatMap((site) => site.hosts);
  const named = hosts.find((host) => !host.includes('*'));
  return named ?? hosts.find((host) => host.startsWith('*.'))?.replace('*', 'www') ?? 'localhost';
}
