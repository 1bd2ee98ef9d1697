import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Dashboard, expectFine } from '../support/browser.ts';
import { readTopic } from '../support/kafka.ts';
import { eventually } from '../support/world.ts';

export function testAudit({ world, ui, as }: Dashboard): void {
  const { api } = world;

  describe('the audit', () => {
    it('shows who read a client, on the page and on the topic', async () => {
      const { client_id } = await api.client({ first_name: 'Looked', last_name: 'At' });
      const officer = await as('officer');
      const answer = await officer.page.goto(ui(`/clients/${client_id}`));
      const request_id = answer?.headers()['x-request-id'] ?? '';
      const { page, complaints } = await as('auditor');
      await eventually(
        async () => (await api.all<AuditRecord>(`/admin/audit?resource_id=${client_id}&action=get_client`)).length > 0,
      );
      await page.goto(ui(`/audit?resource_id=${client_id}&action=get_client`));
      const row = page.getByRole('row', { name: /Olivia Officer from \S+ See a client/ });
      expect(await row.count()).toBe(1);
      await row.locator('summary').click();
      expect(await row.innerText()).toContain(request_id);
      expect(await row.getByRole('link', { name: 'Looked At' }).getAttribute('href')).toBe(
        `/admin/ui/clients/${client_id}`,
      );
      const told = await eventually(async () =>
        (await readTopic(world.bank, 'audit'))
          .map(({ value }) => JSON.parse(String(value)) as AuditRecord)
          .find((record) => record.request_id === request_id),
      );
      expect(told).toMatchObject({
        actor: `jwt:${world.bank.issuer}|officer`,
        action: 'get_client',
        resource_id: client_id,
        outcome: 'success',
      });
      expect(complaints).toEqual([]);
    });

    it('hides reads unless they are selected, and shows the records of one request together', async () => {
      const { client_id } = await api.client({ first_name: 'Together' });
      const officer = await as('officer');
      const answer = await officer.page.goto(ui(`/clients/${client_id}`));
      const request_id = answer?.headers()['x-request-id'] ?? '';
      // The records of reads are written after the response. The created client's is older than them.
      await eventually(async () => {
        const records = await api.all<AuditRecord>(`/admin/audit?request_id=${request_id}`);
        return ['get_client', 'list_client_notes'].every((name) => records.some(({ action }) => action === name));
      });
      const { page, complaints } = await as('auditor');
      await page.goto(ui('/audit'));
      await page.getByRole('link', { name: 'Create a client' }).first().waitFor();
      expect(await page.getByRole('link', { name: 'See a client' }).count()).toBe(0);
      await page.getByLabel('Records of').focus();
      await page.keyboard.type('changes and');
      await page.keyboard.press('Enter');
      await page.waitForURL('**reads=with**');
      const row = page
        .getByRole('row', { name: /See a client[\s\S]*See the notes on a client/ })
        .or(page.getByRole('row', { name: /See the notes on a client[\s\S]*See a client/ }));
      await row.first().waitFor();
      await expectFine(page, 'audit-reads');
      expect(complaints).toEqual([]);
    });

    it('is filtered by a click and by day, and shows names of persons and keys', async () => {
      const { page, complaints } = await as('admin');
      await page.goto(ui('/audit'));
      await page.getByRole('link', { name: 'Create a client' }).first().click();
      await page.waitForURL('**/admin/ui/audit?action=create_client');
      expect(new Set(await page.locator('tbody td:nth-child(3) a').allInnerTexts())).toEqual(
        new Set(['Create a client']),
      );
      await page.goto(ui('/audit'));
      await page.getByLabel('Who').fill('admin');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/admin/ui/audit?actor=jwt**');
      await page.getByText('By Alex Admin only.').waitFor();
      await page.goto(ui('/audit'));
      await page.getByRole('link', { name: 'key bootstrap' }).first().click();
      await page.waitForURL('**/admin/ui/audit?actor=key**');
      await page.getByLabel('To (day)').fill('2020-01-01');
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.getByText('No record matches.').waitFor();
      expect(complaints).toEqual([]);
    });
  });
}
