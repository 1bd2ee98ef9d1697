/** What the demo bank's people, firms and bookings are called. */

export const firstNames = [
  'Amina', 'Brian', 'Chebet', 'David', 'Esther', 'Farida', 'Grace', 'Hassan', 'Imani', 'James', 'Kamau', 'Leila', 'Mwangi', 'Naomi', 'Otieno', 'Peter',
  'Rehema', 'Samuel', 'Tabitha', 'Umar', 'Violet', 'Wanjiru', 'Yusuf', 'Zawadi', 'Achieng', 'Baraka', 'Cynthia', 'Daudi', 'Faith', 'Kevin', 'Mercy', 'Njeri',
];
export const lastNames = [
  'Abdi', 'Barasa', 'Cheruiyot', 'Gitau', 'Hussein', 'Juma', 'Kariuki', 'Kimani', 'Kiprop', 'Langat', 'Makena', 'Maina', 'Mburu', 'Muthoni', 'Mutua', 'Mwende',
  'Ndungu', 'Njoroge', 'Nyambura', 'Ochieng', 'Odhiambo', 'Okello', 'Omondi', 'Onyango', 'Ouma', 'Owino', 'Rotich', 'Wafula', 'Wairimu', 'Wambui', 'Wekesa', 'Were',
];
export const streets = ['Kenyatta Avenue', 'Moi Avenue', 'Ngong Road', 'Tom Mboya Street', 'Mombasa Road', 'Riverside Drive', 'Waiyaki Way', 'Lenana Road'];

export type Trade = 'employer' | 'landlord' | 'grocer' | 'utility';

/** Firms, in the order in which a bank of some size gets them. */
export const firms: readonly { name: string; trade: Trade }[] = [
  { name: 'Rift Valley Tea', trade: 'employer' },
  { name: 'Uhuru Properties', trade: 'landlord' },
  { name: 'Soko Fresh Markets', trade: 'grocer' },
  { name: 'Maji Safi Water and Power', trade: 'utility' },
  { name: 'Savanna Logistics', trade: 'employer' },
  { name: 'Duka Bora Supermarkets', trade: 'grocer' },
  { name: 'Lakeside Schools', trade: 'employer' },
  { name: 'Pwani Homes', trade: 'landlord' },
  { name: 'Mtandao Telecom', trade: 'utility' },
  { name: 'Afya Clinics', trade: 'employer' },
  { name: 'Kilimo Greengrocers', trade: 'grocer' },
  { name: 'Jenga Construction', trade: 'employer' },
];
