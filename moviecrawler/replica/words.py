"""The words that the replica's movies, people and pages are made of. All of it is invented."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADJECTIVES = _words("""
    Amber Ancient Ashen Autumn Bitter Black Blazing Blind Blue Borrowed Brazen Bright Broken Bronze Burning Calm
    Carved Chalk Clever Cobalt Cold Copper Coral Counted Cracked Crimson Crooked Crystal Curious Dancing Daring Dark
    Dazzling Deep Distant Divided Drifting Drowned Dusty Early Eastern Electric Elegant Empty Endless Enduring Fading
    Faithful Falling False Faraway Feral Fierce Final First Flooded Floating Forgotten Fragile Frozen Gentle Gilded
    Glass Golden Granite Grave Green Grey Haunted Hidden Hollow Honest Humble Hungry Idle Immortal Indigo Innocent
    Inner Iron Ivory Jade Jagged Joyful Kindled Last Late Laughing Leaden Lesser Linen Little Living Lonely Long Lost
    Loud Lucid Lunar Marble Mellow Midnight Mighty Misty Modern Moonlit Morning Muted Naïve Naked Narrow Nervous
    Noble Northern Obscure Ochre Open Orphan Outer Painted Pale Paper Patient Perfect Pearl Plain Polar Proud Quiet
    Radiant Rainy Rapid Ragged Reckless Red Remote Restless Rising Roaming Rough Royal Rusted Sacred Sable Salt
    Sapphire Scarlet Scattered Second Secret Severed Shallow Shattered Shining Silent Silver Simple Singing Sleeping
    Slow Small Smoky Solar Solemn Southern Splendid Stolen Stony Stray Stubborn Sudden Summer Sunken Sweet Swift
    Tangled Tender Third Timid Torn Twilight Twisted Unbroken Unspoken Untamed Upper Vagrant Vanishing Velvet Violet
    Wakeful Wandering Warm Weary Western White Wicked Wild Windy Winter Wooden Yellow Young
    """)
"""The first word of a title."""

NOUNS = _words("""
    Acrobat Alibi Almanac Anchor Angler Apiary Apprentice Archer Archive Armada Arrow Atlas Attic Aviary Avenue
    Balcony Ballad Banner Baker Beacon Bell Bicycle Bird Blacksmith Boatman Bridge Bookseller Brook Café Calendar
    Candle Canyon Captain Caravan Carnival Cartographer Cathedral Cellar Château Chorus Circus Citadel City Clinic
    Clock Cloud Coast Compass Concerto Confession Convoy Corridor Cottage Courier Courtyard Cradle Crossing Crown
    Current Dawn Desert Detour Diary Diver Doctor Doorway Dragon Dream Drummer Echo Eclipse Ember Emperor Engine
    Envoy Equation Estuary Exile Expedition Fable Façade Fairground Falcon Farewell Ferry Fiddler Field Flame Flight
    Forest Forge Fountain Frontier Fugitive Funfair Garden Gardener Gate Geometry Ghost Glacier Glove Gospel Grove
    Guest Guide Guitar Hangar Harbour Harvest Heart Heiress Heist Helmet Hermit Highway Horizon Hotel Hour Hunter
    Hymn Inheritance Inlet Island Janitor Journey Judge Jungle Keeper Kingdom Kite Labyrinth Ladder Lagoon Lake
    Lantern Legend Letter Library Lighthouse Locksmith Lullaby Machine Magician Manor Mansion Map Mariner Market
    Mask Masquerade Meadow Melody Memoir Merchant Messenger Mill Miner Mirage Mirror Monsoon Monument Moon Mountain
    Museum Musician Nocturne Notebook Oak Oasis Observatory Ocean Opera Orchard Orchestra Outlaw Owl Palace Parade
    Passage Passenger Pavilion Photograph Pianist Pilgrim Pilot Planet Poet Portrait Postcard Promise Prophet Puppet
    Quarry Queen Railway Rain Ransom Raven Rebel Reef Refuge Requiem Reunion Riddle River Road Rooftop Rose Runner
    Sailor Scholar Sculptor Sea Señorita Shadow Shepherd Shore Signal Sister Sky Smuggler Snow Soldier Song Sparrow
    Spire Stage Stairway Star Station Statue Storm Stranger Street Summit Sun Surgeon Symphony Tailor Temple
    Theatre Thief Thread Throne Tide Tiger Tower Train Traveller Treasure Tree Tunnel Twin Valley Vault Verdict
    Village Vineyard Violin Visitor Voice Volcano Voyage Waltz Watchmaker Water Wave Weaver Well Whale Whisper
    Widow Willow Window Witness Wolf Wreck Writer
    """)
"""The second word of a title. None is an adjective above, with or without its accents."""

PLACES = _words("""
    Aldermoor Alvesta Amberley Anvarra Ardenfell Arkhara Ashgrove Avenor Balmera Barrowmere Belhaven Bellamar Berevan
    Blackwater Borealis Brantholm Briarwick Brightsea Calderon Callisport Carrowmoor Castellan Cavanagh Celandine
    Charnwood Corvalis Cranmere Dalnavert Darrowby Deepwell Dornmouth Drakesend Dunmarrow Eastholm Eldermere Elmswick
    Emberton Esterhall Evermoor Fairhollow Falkenrath Farrowdale Fenwick Finistor Foxhollow Galdermoor Garrowby
    Glenmarrow Goldenbay Graymark Greyhaven Grimsholm Halcyonia Hallowfield Harrowgate Havenmoor Hazelmere Highmoor
    Hollowbrook Icemark Inverdale Ironhill Isenport Ivelmouth Jarrowfield Juniperhall Kaldheim Karravar Kelderby
    Kestrelford Kingsmarsh Lakenfall Larkspur Lindermoor Longmarrow Lorrenport Lowenholm Maravel Marrowfen Mellowdale
    Merriden Mistral Moorgate Mossbank Nareth Netherby Newhollow Nightfall Norvangen Oakhaven Oldmere Orrendale
    Ostermark Pellworth Penhallow Pinecrest Portamaro Quarrymoor Quillhaven Ravenmoor Redwater Rivenhall Rosedale
    Rookery Saltmarsh Sandoval Seabright Selkirk Severin Shalehaven Silverdale Skarholm Solmark Starfall Stonebridge
    Summerisle Sundale Swanmere Tallowby Tamarind Tarnhollow Thistledown Thornbury Tidewater Torrenmoor Trevalgan
    Umberfield Upperby Valmora Vanterre Vesperhill Violetta Waldenport Wanderford Westmarrow Whitmere Wickhollow
    Wildehaven Windermoor Winterbourne Wolfsend Woodmarrow Yarrowdale Yewbank Zephyria Zennor
    """)
"""Towns that don't exist."""

TITLE_FORMS = (
    *("The {core}",) * 7,
    *("{core}",) * 6,
    *("{article} {core}",) * 2,
    *("{core}: {subtitle}",) * 2,
    *("{core} {number}",) * 2,
    "{owner}'s {core}",
)
"""What titles look like around their words; the repeated ones are the more frequent."""

SUBTITLES = (
    "The Long Way Home",
    "A Winter's Tale Untold",
    "Beyond the Last Station",
    "The Return",
    "Origins Unknown",
    "An Evening in Three Acts",
    "What the Tide Brought",
    "The Final Chapter",
    "Dawn of the Seventh Day",
    "Letters Never Sent",
    "No Way Back",
)

OWNERS = ("Marta", "Old Tom", "Dr. Elric", "Señor Vidal", "Aunt Zoë", "Captain Lund", "Jonah", "Mrs. Harrow")
"""Whose something a title may be."""

FOREIGN_TITLES = (
    (
        _words("静かな 青い 最後の 遠い 失われた 冬の 見えない 燃える 忘れられた 白い 真夜中の"),
        _words("港 鏡 駅 灯台 手紙 庭 海 旅人 約束 影 歌 橋 森"),
        "",
        ("Japan", "Japanese", "JP", "ja"),
    ),
    (
        _words("Тихая Синяя Последняя Далёкая Забытая Зимняя Тайная Белая Долгая Ночная Чужая"),
        _words("гавань станция дорога песня река башня тень звезда комната клятва весна птица"),
        " ",
        ("Russia", "Russian", "RU", "ru"),
    ),
    (
        _words("조용한 푸른 마지막 먼 잃어버린 겨울의 하얀 숨겨진 오래된 붉은 새벽의"),
        _words("항구 거울 편지 등대 정원 바다 약속 그림자 노래 다리 숲 여행자"),
        " ",
        ("South Korea", "Korean", "KR", "ko"),
    ),
)
"""Titles in other scripts: first words, second words, what joins them, and where such a movie is from."""

ORIGINAL_TITLES = (
    ("Le dernier", "château de la forêt", ("France", "French", "FR", "fr")),
    ("La maison", "d'été oubliée", ("France", "French", "FR", "fr")),
    ("El último", "viaje del niño", ("Spain", "Spanish", "ES", "es")),
    ("Die stille", "Straße über den Dächern", ("Germany", "German", "DE", "de")),
    ("Den lange", "vinter på øya", ("Norway", "Norwegian", "NO", "no")),
    ("Žlutý", "dům u řeky", ("Czechia", "Czech", "CZ", "cs")),
    ("O último", "verão em São Vidal", ("Portugal", "Portuguese", "PT", "pt")),
)
"""Original titles of movies that are shown under an English one: a beginning, an end, and where they are from."""

ENGLISH_COUNTRIES = (
    ("United States", "English", "US", "en"),
    ("United States", "English", "US", "en"),
    ("United States", "English", "US", "en"),
    ("United Kingdom", "English", "GB", "en"),
    ("Canada", "English", "CA", "en"),
    ("Australia", "English", "AU", "en"),
)
"""Where the other movies are from: country, language, and the two letters of each."""

FIRST_NAMES = _words("""
    Ada Adrian Agnes Alba Albin Alma Amara Anders André Anika Anton Ariel Arvid Astrid Aurora Axel Beatriz Benno
    Birgit Björn Bruno Camila Carla Cato Celeste Chidi Chloë Cosmo Dagny Dalia Dario Delia Desmond Dmitri Edda Edgar
    Eira Elena Elias Elodie Emeka Emil Enzo Esme Ewan Fabian Farida Felix Fiona Flora Freya Gaia Gideon Greta Gustav
    Hana Hanno Harriet Hedda Hugo Ida Idris Ilse Imogen Ines Ingmar Iris Isolde Ivan Jasper Joana Jonas Josefa Jules
    Kaito Kamila Katya Kenji Kirsten Lars Laszlo Leila Lena Leon Linus Livia Lotte Lucian Magda Malik Marcel Mateo
    Maud Mei Milo Mina Mirela Nadia Naomi Nico Nils Noor Octavia Olga Omar Oona Orla Oscar Otto Paloma Pascal Petra
    Quentin Rafael Ramona Raoul Renata Rhys Romy Rosa Rufus Sabine Salma Samir Selma Signe Silas Simone Soraya Stella
    Sven Tamsin Tariq Tessa Theo Tilda Tomas Uma Ursula Vera Viggo Vincent Wanda Wilma Xenia Yannick Yara Yusuf Zelda
    """)

LAST_NAMES = _words("""
    Abernath Achterberg Adeyemi Almqvist Andrade Ansel Arkwright Aspinall Ballantine Barrowclough Bastien Beaumaris
    Bellweather Bergström Birchall Blackwood Bonaventure Borgersen Brandvold Brightwell Cabrera-Lund Calloway Cardoso
    Castellane Chamberley Cordova Crestwell Dalgaard Darlington D'Arbanville Delacroix Delgado-Reyes Dobrev Drummond
    Eastwick Ekström Ellingboe Endicott Escarra Fairweather Falkenberg Farnsworth Fernhill Fiorentini Fitzalan
    Fosterling Galbraith Garrick Gaspard Greenleaf Grimaldi Grønvold Haldane Halloran Harkness Hartigan Hasegawa
    Haverford Hawthorn Heddle Hollingbrook Ibarra Ilesanmi Ingleby Ishikawa Ivanoff Jablonska Jarrett Jørgensen
    Kallistrate Karlsen Kaspersen Kavanor Kettering Kilbride Kowalczyk Kristofferson Lachance Lagerfeldt Langstrom
    Larkin Laurentis Leclair Lindqvist Llewelyn Lockridge Lombardo Macready Maelstrom Mandelson Marchetti Marlowe
    McAllister Meriwether Mirren Montague Mørk Nakagawa Navarro Nightingale Norwood Nuñez Oakshott O'Banion Okonkwo
    Olofsdotter Ormond Ostrander Pemberton Pendragon Petrosyan Pettigrew Pinkerton Quarles Quillfeather Ravenscroft
    Redfern Reinhardt Rosendahl Rousselot Sandoval Santangelo Saxelby Schönfeld Scrivener Silverstein Skovgaard
    Somerville Sorensen Stavros Sternwood Strand Tachibana Tanaka Thackeray Thorne Tolliver Trevelyan Tveit Underhill
    Valdivia Valentine Vandermeer Vasquez Vestergaard Villeneuve-Ross Voss Wainwright Wakefield Waverly Weatherby
    Westerlund Whitlock Wolfhart Wyndham Yamamura Yarborough Zamora Zielinski
    """)

CHARACTERS = _words("""
    Alda Basil Cora Darcy Edmund Flint Gwen Hector Isadora Jem Kit Lorna Magnus Nell Orson Piper Quill Rex Sable Thea
    Ulric Verity Wes Yvette Zane
    """)
CHARACTER_TITLES = ("", "", "", "", "Dr. ", "Captain ", "Young ", "Mrs. ", "Inspector ", "Old ")

GENRES = _words("""
    Action Adventure Animation Biography Comedy Crime Documentary Drama Family Fantasy History Horror Music Mystery
    Romance Sci-Fi Sport Thriller War Western
    """)

CERTIFICATES = ("R", "PG-13", "PG-13", "PG", "R", "G", "Not Rated", "PG", "R", "NC-17")

HEROES = ("A retired watchmaker", "Two estranged sisters", "A young cartographer", "The last pianist of a small town")
DEEDS = ("must cross", "returns to", "tries to save", "hides a secret from", "inherits half of", "is banished from")
TROUBLES = (
    'before the "long night" begins.',
    "while an old rival closes in.",
    "and finds that nobody there remembers the war.",
    "with nothing but a map, a mule & a borrowed violin.",
    "as the river rises for the third time in a year.",
)

FILLER = _words("""
    account action again align amount anchor animate answer apply archive around arrange badge banner basket because
    before begin below between border bottom branch bright browse button cancel canvas caption card carousel center
    change charge check choose circle clear close cluster column combine comment compare confirm contain content
    continue control copy corner cover create current dashed default deliver detail device dialog direct disable
    display divide drawer during editor effect element enable enter error event every expand export favour feature
    field figure filter finish first flex focus follow footer format forward frame friend further gallery general
    global grid group handle header height hidden history hover icon image import inline input inside invite item
    label language larger layout leave level limit linear link list loader local manage margin master measure media
    member menu message middle mobile modal module month motion narrow native nested never normal notice number
    object offer offset online option order outline output overlay owner padding panel parent picker place player
    please popular portal position poster present press preview primary print private process profile promote prompt
    public query quick radius random range rating reader recent record reduce region related remove render repeat
    replace report request reset resize result return reveal review rotate rounded row sample scale screen scroll
    search second section select sender series service session shadow share shelf should side sign simple single
    slide small social solid source space spinner split stack start state status sticky store stream string style
    submit success summary support switch symbol table target template text theme through title toggle token toolbar
    tooltip track trailer transform transition trigger update upper value vertical video view visible watch width
    window within without wrapper writer yellow zoom
    """)
"""What the bulk of a page is made of."""
